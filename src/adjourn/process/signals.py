"""Turns signals into something that can be polled and counted."""

import contextlib
import os
import signal
from collections.abc import Iterable
from types import FrameType

IGNORED = (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)  # each has an error in its stead, or no meaning to us


def start_afresh() -> None:
    """Forget every handler and every signal that is under way, then let all signals through."""
    for number in range(1, signal.NSIG):
        # SIGKILL, SIGSTOP and those that libc keeps for itself cannot be set.
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
            if number not in IGNORED:
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class SignalBox:
    """Counts the signals that arrive; polls readable when one did. One per process."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._counts = dict.fromkeys(numbers, 0)
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        # A full pipe loses bytes but no signal: the handlers count, the pipe only wakes.
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for number in self._counts:
            signal.signal(number, self._arrive)

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._wake

    def count(self, *numbers: int) -> int:
        """Return how many signals of these kinds have arrived so far."""
        return sum(self._counts[number] for number in numbers)

    def clear(self) -> None:
        """Stop polling readable until the next signal; the counts stay."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass

    def close(self) -> None:
        """Stop waking; the next box of this process takes over."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._waker)

    def _arrive(self, number: int, _frame: FrameType | None) -> None:
        self._counts[number] += 1

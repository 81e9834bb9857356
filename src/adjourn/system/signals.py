"""Requests to stop, as something to wait for."""

import contextlib
import os
import signal
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from types import FrameType

_PAUSE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Counts the requests to stop, and can be polled for them."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._count = 0

    def fileno(self) -> int:
        """Return what to poll."""
        return self._fd

    def taken(self) -> int:
        """Return how often we were told to stop."""
        with suppress(BlockingIOError):
            self._count += len(os.read(self._fd, 64))
        return self._count


@contextmanager
def deferred_signals(*, heeds_later: bool = True) -> Generator[Signals, None, None]:
    """Turn interrupts into something to poll, so that none ever breaks into a transaction.

    A command that only has to say how a run ended heeds none later: the second Ctrl+C must not keep
    it from that.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {number: signal.getsignal(number) for number in _PAUSE_SIGNALS}
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number, handler in before.items():
        if handler is not signal.SIG_IGN or number == signal.SIGINT:
            signal.signal(number, _do_nothing)
    try:
        yield Signals(reader)
    except BaseException:
        heeds_later = True
        raise
    finally:
        signal.set_wakeup_fd(waker)
        for number, handler in before.items() if heeds_later else ():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Let the wake-up descriptor tell of the signal."""


# Each has an error in its stead, or no meaning to us
IGNORED = (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


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

"""Waits for events: wake-ups, descriptors, and signals, so that none interrupts a transaction."""

import os
import select
import signal
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

CHECK_SECONDS = 2.0  # a check repairs a lost wake-up; everything else is an event
OUTPUT_SECONDS = 0.1  # between two reads of what a run has printed
_PAUSE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Each arrives as an error in its place, or means nothing to us
IGNORED = (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)


class EventSource(Protocol):
    """Something that is readable when an event has come, until it is drained."""

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        ...

    def drain(self) -> None:
        """Forget the events that have come so far."""
        ...


class Poll:
    """Waits for several sources, and for plain descriptors, at once.

    What it waits for is checked after each wait, whether an event came or not. Sources are drained
    before that check, so an event that comes during it ends the next wait at once.
    """

    def __init__(self, *sources: EventSource) -> None:
        self._sources = sources
        self._poll = select.poll()
        for source in sources:
            self.add(source.fileno())

    def add(self, fd: int) -> None:
        """Wait for this descriptor too."""
        self._poll.register(fd, select.POLLIN)

    def remove(self, fd: int) -> None:
        """Do not wait for this descriptor any more."""
        self._poll.unregister(fd)

    def wait(self, seconds: float = CHECK_SECONDS) -> set[int]:
        """Wait for an event, at most so long; return the descriptors that were readable."""
        ready = {fd for fd, _ in self._poll.poll(max(seconds, 0) * 1000)}
        for source in self._sources:
            source.drain()
        return ready


class Signals:
    """Counts the signals that arrive, and is readable from then until `drain`.

    A process has one at a time, made by its main thread.
    """

    def __init__(self, *numbers: int) -> None:
        self._counts = dict.fromkeys(numbers, 0)
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A full pipe loses bytes but no signal: the handlers count, the pipe only wakes. CPython
        # marks a signal as pending before it writes the byte, so a reader of the byte finds
        # the signal counted.
        self._waker_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._handlers_before = {
            number: signal.signal(number, self._arrive) for number in self._counts
        }

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._wake

    def count(self, *numbers: int) -> int:
        """Return how many signals of these kinds, or of all, have arrived; a SIGQUIT is two."""
        return sum(self._counts[number] for number in numbers or self._counts)

    def drain(self) -> None:
        """Stop being readable until the next signal; the counts stay. Call it before `count`."""
        with suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass

    def close(self, *, restore_handlers: bool = True) -> None:
        """Stop waking; from now on signals do what they did before, or nothing."""
        signal.set_wakeup_fd(self._waker_before)
        for number, handler in self._handlers_before.items() if restore_handlers else ():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._waker)

    def _arrive(self, number: int, _frame: FrameType | None) -> None:
        # SIGQUIT is for those who want no grace: it is the second Ctrl+C, which kills, at once
        self._counts[number] += 2 if number == signal.SIGQUIT else 1


@contextmanager
def deferred_signals(
    numbers: Iterable[int] = _PAUSE_SIGNALS, *, restore_handlers: bool = True
) -> Generator[Signals, None, None]:
    """Count interrupts in the block instead of being interrupted by them.

    A signal that the user has ignored (nohup) stays ignored, but for SIGINT. With
    `restore_handlers=False` signals do nothing after the block either: a second Ctrl+C must not
    keep a command from printing how its run ended.
    """
    signals = Signals(
        *(
            number
            for number in numbers
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
        )
    )
    try:
        yield signals
    except BaseException:
        restore_handlers = True
        raise
    finally:
        signals.close(restore_handlers=restore_handlers)


def wait_for_signal(signals: Signals, *, seconds: float) -> None:
    """Return when a signal has arrived, or the time is over."""
    poll = select.poll()
    poll.register(signals.fileno(), select.POLLIN)
    deadline = time.monotonic() + seconds
    while not signals.count() and (rest := deadline - time.monotonic()) > 0:
        poll.poll(rest * 1000)
        signals.drain()


def reset_signals() -> None:
    """Forget every handler, and every signal that is pending, then let all signals through."""
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        # SIGKILL, SIGSTOP and those that libc keeps for itself cannot be set
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
            if number not in IGNORED:
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

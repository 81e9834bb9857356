"""Requests to stop, as something to wait for."""

import os
import signal
from collections.abc import Generator
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

    A command that only has to say how a run ended heeds none later: the second Ctrl+C must not keep it from that.
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

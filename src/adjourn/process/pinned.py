"""Holds processes by their pidfd, so that a signal never reaches one that only got the same pid."""

import contextlib
import math
import os
import select
import signal
from collections.abc import Callable
from typing import Self

from adjourn.process.identity import Seen, look_at


class Pinned:
    """A process that is watched and signalled through its pidfd."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    @classmethod
    def pin(cls, pid: int, *, if_it: Callable[[Seen], bool]) -> Self | None:
        """Return the process that has `pid`, if it lives and passes the test."""
        try:
            pinned = cls(os.pidfd_open(pid))
        except OSError:
            return None
        seen = look_at(pid)
        # Not gone after the look means that the look was at this very process.
        if seen and if_it(seen) and not pinned.gone():
            return pinned
        pinned.close()
        return None

    def fileno(self) -> int:
        """Return the pidfd; it polls readable once the process is gone."""
        return self._pidfd

    def send(self, number: int) -> None:
        """Send a signal; a process that is gone, or not ours to signal, is left alone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self._pidfd, number)

    def gone(self, *, within: float | None = 0) -> bool:
        """Say whether the process is gone, or goes within so many seconds; None means to wait for it."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(None if within is None else math.ceil(within * 1000)))

    def close(self) -> None:
        """Let go of the process."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

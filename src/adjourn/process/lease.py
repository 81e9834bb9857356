"""A run's lease, as its shim sees it.

A deadline that its supervisor moves on, from outside and as long as it may.
"""

import contextlib
import os
import struct
import time

NAME = "lease"
_DEADLINE = struct.Struct("=d")
_MANY = 4096  # bytes: more deadlines than anybody hands over at once


def moment() -> float:
    """Return the seconds since this machine started, also those that it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The end of the pipe that a shim reads its deadlines from."""

    def __init__(self, run_dir: str, deadline: float) -> None:
        self._deadline = deadline
        os.mkfifo(f"{run_dir}/{NAME}", 0o600)
        # For writing, too: so it never ends, however often the other end opens and closes.
        self._pipe = os.open(
            f"{run_dir}/{NAME}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        )

    def fileno(self) -> int:
        """Return what to poll."""
        return self._pipe

    def renew(self) -> None:
        """Take the newest deadline that was handed over."""
        with contextlib.suppress(BlockingIOError):
            while content := os.read(self._pipe, _MANY):
                whole = len(content) - len(content) % _DEADLINE.size
                if whole:
                    (self._deadline,) = _DEADLINE.unpack_from(content, whole - _DEADLINE.size)

    def left(self) -> float:
        """Return how many seconds are left."""
        self.renew()
        return self._deadline - moment()


def hand_over(run_dir: str, deadline: float) -> None:
    """Hand a shim its new deadline; one that is gone has no use for it."""
    try:
        pipe = os.open(
            f"{run_dir}/{NAME}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        )
    except OSError:
        return
    try:
        os.write(pipe, _DEADLINE.pack(deadline))
    except OSError:
        return
    finally:
        os.close(pipe)

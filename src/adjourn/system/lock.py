"""A lock that lasts exactly as long as the process that holds it."""

import fcntl
import os

from adjourn.system.files import open_plain


class HeldLock:
    """A lock file held by this process until `close`, or until it dies."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """Return the descriptor that keeps the lock."""
        return self._fd

    def close(self) -> None:
        """Let go of the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def hold(path: str) -> HeldLock:
    """Take the lock at `path`, making the file if need be, and wait for whoever has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        raise
    return HeldLock(fd)


def hold_if_free(path: str) -> HeldLock | None:
    """Take the lock at `path`, or return None if somebody has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return HeldLock(fd)


def is_held(path: str) -> bool:
    """Return whether somebody holds the lock at `path`.

    Asking never keeps others from asking or holding.
    """
    fd = open_plain(path)
    if fd is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)

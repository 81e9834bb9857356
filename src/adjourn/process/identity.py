"""Names processes so that a reused pid is never taken for the old one."""

import contextlib
import math
import os
import re
import select
import signal
from collections.abc import Callable
from typing import NamedTuple, Self

from adjourn.core.task import ProcessId
from adjourn.system.machine import boot_id

# How the control group of a shim is called
SHIM_GROUP = re.compile(r"adjourn-(?P<pid>\d+)-(?P<start_time>\d+)")


class ProcStat(NamedTuple):
    """A living process as /proc showed it at one moment."""

    pid: int
    parent: int
    session: int
    start_time: int


def identify(pid: int) -> ProcessId | None:
    """Return the name of the process that has `pid` now, or None if none lives there."""
    seen = look_at(pid)
    return ProcessId(boot_id=boot_id(), pid=pid, start_time=seen.start_time) if seen else None


def is_alive(process: ProcessId) -> bool:
    """Return whether this very process still lives; a zombie does not."""
    return identify(process.pid) == process


def look_at(pid: int) -> ProcStat | None:
    """Return the process that has `pid` now, or None if none lives there."""
    try:
        stat = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold blanks and parentheses; nothing after its last one does.
    state, parent, _, session, *others = stat[stat.rindex(b")") + 2 :].split()
    threads, start_time = int(others[13]), int(others[15])
    # A zombie with threads is a process that lives on without its first thread.
    if state in {b"Z", b"X"} and threads <= 1:
        return None
    return ProcStat(pid, int(parent), int(session), start_time)


def membership(pid: int | str) -> str:
    """Return the control group of a process as the kernel writes it; "" if it has none."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8") as lines:
            return next((line[3:].rstrip("\n") for line in lines if line.startswith("0::")), "")
    except (OSError, UnicodeDecodeError):
        return ""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


class Pinned:
    """A process that is watched and signalled through its pidfd."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    @classmethod
    def pin(cls, pid: int, *, if_it: Callable[[ProcStat], bool]) -> Self | None:
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
        """Return whether the process is gone, or goes within so many seconds.

        None means to wait for it.
        """
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(None if within is None else math.ceil(within * 1000)))

    def close(self) -> None:
        """Let go of the process."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

"""Names processes so that a reused pid is never taken for the old one."""

import os
from typing import NamedTuple

from adjourn.core.identity import ProcessId


class Seen(NamedTuple):
    """A living process as /proc showed it at one moment."""

    pid: int
    parent: int
    session: int
    start_time: int


def boot_id() -> str:
    """Return what tells this boot of this machine from every other."""
    return _read("/proc/sys/kernel/random/boot_id").decode().strip()


def identify(pid: int) -> ProcessId | None:
    """Return the name of the process that has `pid` now, or None if none lives there."""
    seen = look_at(pid)
    return ProcessId(boot_id=boot_id(), pid=pid, start_time=seen.start_time) if seen else None


def is_alive(process: ProcessId) -> bool:
    """Say whether this very process still lives; a zombie does not."""
    return identify(process.pid) == process


def look_at(pid: int) -> Seen | None:
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
    return Seen(pid, int(parent), int(session), start_time)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)

"""Names processes so that a reused pid is never taken for the old one."""

import os

from adjourn.core.identity import ProcessId

_DEAD = (b"Z", b"X")
_STATE, _START_TIME = 0, 19  # fields 3 and 22 of /proc/PID/stat, counted after the command's name


def boot_id() -> str:
    """Return what tells this boot of this machine from every other."""
    return _read("/proc/sys/kernel/random/boot_id").decode().strip()


def identify(pid: int) -> ProcessId | None:
    """Return the name of the process that has `pid` now, or None if none lives there."""
    fields = stat_fields(pid)
    if fields is None or fields[_STATE] in _DEAD:
        return None
    return ProcessId(boot_id=boot_id(), pid=pid, start_time=int(fields[_START_TIME]))


def is_alive(process: ProcessId) -> bool:
    """Say whether this very process still lives; a zombie does not."""
    return identify(process.pid) == process


def stat_fields(pid: int | str) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on, or None if there is no such process."""
    try:
        stat = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold blanks and parentheses; nothing after the last one does.
    return stat[stat.rindex(b")") + 2 :].split()


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)

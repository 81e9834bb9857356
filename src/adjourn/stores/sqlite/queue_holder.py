"""Finds out which process holds the queue of writers, for those who wait for it."""

import os
import sys
import time

import msgspec

LONG = 5.0  # seconds of waiting after which people are told
_BETWEEN_LOOKS = 0.5
_OURS = "adjourn"
_STOPPED = frozenset("Tt")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a lock."""

    pid: int
    name: str
    is_stopped: bool

    @property
    def remedy(self) -> str:
        """The command that ends the wait: a process that is killed leaves the store whole."""
        return (
            f"kill -CONT {self.pid}"
            if self.is_stopped
            else f"ps -o pid,stat,etime,args -p {self.pid}"
        )


def holder_of(descriptor: int) -> Holder | None:
    """Return the process that holds the flock of an open file, if there is one that we can see."""
    wanted = os.fstat(descriptor)
    try:
        with open("/proc/locks", encoding="ascii") as lines:
            rows = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    except OSError:
        return None
    # A row is: 1: FLOCK ADVISORY WRITE 4711 fd:01:12345 0 EOF
    pids = [int(row[4]) for row in rows if row[5].rpartition(":")[2] == str(wanted.st_ino)]
    return next((_described(pid) for pid in pids if pid > 0 and _has_open(pid, wanted)), None)


def waiting_sentence(holder: Holder | None, seconds: float) -> str:
    """Return what to tell somebody who has waited that long for the holder."""
    span = f"{seconds:.0f} s"
    if holder is None:
        return (
            f"waiting for the store for {span}: "
            "a process that cannot be seen from here holds it, perhaps in a container"
        )
    state = "; it is stopped" if holder.is_stopped else ""
    return (
        f"waiting for the store: process {holder.pid} ({holder.name}) "
        f"has held it for {span} or longer{state}"
    )


def warn(sentence: str, way_out: str) -> None:
    """Print who is waited for on stderr."""
    try:
        sys.stderr.write(f"adjourn: {sentence}\n  try: {way_out}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    """Return whether a process has the file open.

    File systems may share the numbers of their files.
    """
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return True  # it belongs to somebody else, or is just leaving: the number alone has to do
    for name in names:
        try:
            found = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


def _described(pid: int) -> Holder:
    """Return what a process is called.

    Of ours the verb, never its other words, which may hold secrets.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            before, _, after = file.read().rpartition(")")
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            words = [os.path.basename(word) for word in file.read().split("\0")]
    except OSError:
        return Holder(pid=pid, name="unknown", is_stopped=False)
    name = before.partition("(")[2]
    if _OURS in words[:-1]:
        verb = words[words.index(_OURS) + 1]
        name = f"{_OURS} {verb}" if verb.isalpha() else _OURS
    return Holder(pid=pid, name=name, is_stopped=after.split()[0] in _STOPPED)


def held_for(descriptor: int, seconds: float) -> Holder | None:
    """Watch a lock for so long.

    Return who held it all the time, or None if it changed hands or was let go.
    """
    first = holder_of(descriptor)
    deadline = time.monotonic() + seconds
    while first is not None and time.monotonic() < deadline:
        time.sleep(_BETWEEN_LOOKS)
        now = holder_of(descriptor)
        if now is None or now.pid != first.pid:
            return None
        first = now
    return first

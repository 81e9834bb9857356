"""Arms the injection library that is loaded into this process, and reads what it did."""

import ctypes
import enum
import mmap
import os
import struct
from pathlib import Path

import msgspec

TRACED = 3840
ROLES = 8
_ROLE = struct.Struct(f"=16sqqiiii208s{TRACED}s")


class Mode(enum.IntEnum):
    """How a process dies at its kill point: the call undone, done, or half done."""

    NEVER = 0
    BEFORE = 1
    AFTER = 2
    TORN = 3


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """One kill point: the `at`-th call of the step itself, or of the `instance`-th process that calls itself `role`."""

    at: int = 0
    mode: Mode = Mode.NEVER
    role: str = ""
    instance: int = 0


class Shot(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an aim."""

    calls: int
    processes: int
    killed: int
    what: str
    trace: str


class Control:
    """The file through which the driver tells every process of a scenario whether it is to die."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(_ROLE.size * ROLES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _ROLE.size * ROLES)

    def aim(self, aim: Aim) -> None:
        """Forget what was, and aim at one role; the step itself is armed by `arm`."""
        self._map[:] = bytes(len(self._map))
        if aim.role:
            role = _ROLE.pack(aim.role.encode(), aim.at, 0, aim.mode, aim.instance, 0, 0, b"", b"")
            self._map[_ROLE.size : 2 * _ROLE.size] = role

    def shot(self, aim: Aim) -> Shot:
        """Return what happened to the process that was aimed at."""
        fields = _ROLE.unpack_from(self._map, _ROLE.size if aim.role else 0)
        _, _, calls, _, _, processes, killed, what, trace = fields
        return Shot(
            calls=calls,
            processes=processes,
            killed=killed,
            what=what.rstrip(b"\0").decode(errors="replace").strip(),
            trace=trace[: min(calls, TRACED)].decode(),
        )


def loaded() -> bool:
    """Say whether the library is in this process."""
    return hasattr(_process, "inject_arm")


def use(control: Control) -> None:
    """Let this process and its forks be aimed at through `control`."""
    assert _process.inject_control(os.fsencode(control.path)) == 0, control.path


def arm(aim: Aim) -> None:
    """Count this process's calls from here on, and die at the one aimed at."""
    _process.inject_arm(ctypes.c_long(aim.at), int(aim.mode))


def count() -> int:
    """Return how many calls were counted since `arm`."""
    return int(_process.inject_count())


def disarm() -> None:
    """Count no more."""
    _process.inject_disarm()


def begin_journal(path: Path, *, root: Path) -> None:
    """Tell the journal from here on what this process and its children do to the device of `root`."""
    assert _process.inject_begin_journal(os.fsencode(path), os.fsencode(root)) == 0, path


def end_journal() -> None:
    """Tell it nothing more of this process."""
    _process.inject_end_journal()


def mark(text: str) -> None:
    """Write a remark into the journal, at this very moment of it."""
    _process.inject_mark(text.encode())


_process = ctypes.CDLL(None)
if loaded():
    _process.inject_count.restype = ctypes.c_long

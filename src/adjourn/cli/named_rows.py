"""The rows of the last list that a person printed at this terminal: `@1` names the first.

They are kept for one session of a terminal, outside of every store. Pipes, runs and `watch` keep
nothing and change nothing.
"""

import os
import sys
from contextlib import suppress

import msgspec

from adjourn.core.errors import Misuse, NotFound
from adjourn.process.ancestry import enclosing_run
from adjourn.system.files import private_directory, write_whole
from adjourn.system.machine import state_directory

_FOLDER = "terminals"
_STARTED = 19  # the field of /proc/PID/stat with the start time, counted behind the name
_WAY_OUT = "adjourn inbox, at this terminal"


class NamedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row: an ask or a task, the store that it is in, and the call that was shown."""

    store: str
    id: str
    digest: str | None = None  # of an approval's call


def keep_rows(rows: list[NamedRow]) -> None:
    """Remember the rows of a list, if a person has it on a terminal."""
    path = _path()
    if path is None or not sys.stdout.isatty() or enclosing_run():
        return
    # A convenience: the list is printed even where it cannot be kept
    with suppress(OSError):
        os.makedirs(os.path.dirname(os.path.dirname(path)), mode=0o700, exist_ok=True)
        folder = private_directory(os.path.dirname(path))
        for name in os.listdir(folder):
            if _name_of_session(name.partition("-")[0]) != name:
                os.unlink(os.path.join(folder, name))  # that terminal was closed
        write_whole(path, msgspec.json.encode(rows))


def find_row(text: str) -> NamedRow:
    """Return the row that `@N` names, or refuse what names none."""
    number = text.removeprefix("@")
    if not (number.isascii() and number.isdigit()):
        raise Misuse(f"{text} is not a row: write @ and a number", way_out=_WAY_OUT)
    path = _path()
    if path is None or enclosing_run():
        raise Misuse(
            f"{text} names a row of the last list at a terminal, and no list was printed here",
            way_out="adjourn inbox",
        )
    try:
        with open(path, "rb") as file:
            rows = msgspec.json.decode(file.read(), type=list[NamedRow])
    except (OSError, msgspec.DecodeError):
        raise NotFound(
            f"{text}: no list was printed at this terminal yet", way_out=_WAY_OUT
        ) from None
    if not 1 <= int(number) <= len(rows):
        has = f"{len(rows)} rows" if len(rows) != 1 else "1 row"
        raise NotFound(f"{text}: the last list at this terminal has {has}", way_out=_WAY_OUT)
    return rows[int(number) - 1]


def _path() -> str | None:
    """Return where the rows of this terminal are kept; None if a person is not at one."""
    if not (sys.stdin and sys.stdin.isatty()):
        return None
    name = _name_of_session(str(os.getsid(0)))
    return os.path.join(state_directory(os.environ), _FOLDER, name) if name else None


def _name_of_session(leader: str) -> str | None:
    """Return what no other session of this machine is called: its leader and when that began."""
    try:
        with open(f"/proc/{int(leader)}/stat", "rb") as file:
            began = file.read().rpartition(b")")[2].split()[_STARTED]
    except (OSError, ValueError, IndexError):
        return None
    return f"{leader}-{began.decode()}"

"""The small steps that all rows are read and written with."""

import os

import msgspec

from adjourn.core.errors import NotFound, Outdated
from adjourn.core.identity import ProcessId
from adjourn.stores.bodies import name_or_none
from adjourn.stores.rows import Numbered, Values, statements_in
from adjourn.stores.sqlite.database import Database

_shims = msgspec.json.Decoder(ProcessId)


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    SQL = statements_in(_file.read())


class Steps(Numbered):
    """Reads and writes by the names of statements, and knows the numbers of tasks and what is not written yet."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._numbers: dict[str, int] = {}
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._newest_seal: bytes | None = None
        self._events: list[Values] = []  # appended and not yet written
        self.written: tuple[int, bytes] | None = None  # the newest event of this transaction: its place and its seal
        self.opens_gate = False  # whether this transaction lets a call start

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._db.all(SQL[query], *values)

    def _run(self, query: str, *values: object) -> None:
        self._all(query, *values)

    def _swap(self, query: str, *values: object, name: str) -> None:
        if not self._db.has_changed(SQL[query], *values):
            raise Outdated(f"{name} was changed by someone else at the same moment")

    def _no(self, task_id: str) -> int:
        if task_id in self._numbers:
            return self._numbers[task_id]
        row = self._one("task_no", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        self._numbers[task_id] = int(row[0])
        return int(row[0])


def blob(hexadecimal: str | None) -> bytes | None:
    """Return a digest as its bytes, half as long."""
    return bytes.fromhex(hexadecimal) if hexadecimal else None


def as_hex(digest: bytes | None) -> str | None:
    """Return a digest as the rest of the program knows it."""
    return digest.hex() if digest else None


def as_json(shim: ProcessId | None) -> str | None:
    """Return a process as it lies in a row."""
    return msgspec.json.encode(shim).decode() if shim else None


def as_shim(text: str | None) -> ProcessId | None:
    """Return the process that lies in a row."""
    return _shims.decode(text) if text else None

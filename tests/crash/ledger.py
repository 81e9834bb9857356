"""Reads a store's tables, as the tests see them.

With SQL of their own, and none of the product's code.
"""

import contextlib
from pathlib import Path

import apsw
import msgspec

_BITS = 20  # the number of a run, a call or an ask is its task's number times 2^20 plus its own

ENDED = frozenset({"succeeded", "failed", "canceled"})


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task and where it is."""

    id: str
    state: str


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call and what became of it."""

    id: str
    state: str
    is_tool: bool = False  # of an agent: its own name is `run_N`


class AskRow(msgspec.Struct, frozen=True, kw_only=True):
    """An ask and its reply."""

    id: str
    task: str
    kind: str
    state: str
    reply: str | None
    call: str
    given: str = "[]"  # the approvals of an ask that needs several, as JSON


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its state."""

    id: str
    call: str
    state: str


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """A store at one moment."""

    tasks: list[TaskRow] = []
    calls: list[CallRow] = []
    asks: list[AskRow] = []
    runs: list[RunRow] = []
    damage: str = ""

    @property
    def open_asks(self) -> list[AskRow]:
        """Return what waits for a person."""
        return [ask for ask in self.asks if ask.state == "pending"]

    def of(self, task: TaskRow) -> list[CallRow]:
        """Return the calls of a task."""
        return [call for call in self.calls if call.id.startswith(f"{task.id}.")]

    def open_asks_of(self, task: TaskRow) -> list[AskRow]:
        """Return what waits for a person before the task can go on."""
        return [ask for ask in self.open_asks if ask.task == task.id]


def read_ledger(path: Path) -> Ledger:
    """Return the store whose database is at `path`.

    One that was never made is empty, a damaged one says so.
    """
    if not path.exists() or path.stat().st_size == 0:
        return Ledger()
    try:
        with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            db.set_busy_timeout(5000)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return _read(db)
    except apsw.Error as error:
        return Ledger(damage=f"{type(error).__name__}: {error}")


def _read(db: apsw.Connection) -> Ledger:
    whole = "; ".join(str(row[0]) for row in db.execute("PRAGMA integrity_check"))
    if whole != "ok":
        return Ledger(damage=whole)
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'task'").get:
        return Ledger()
    names = {int(no): str(id_) for no, id_ in db.execute("SELECT no, id FROM task")}
    return Ledger(
        tasks=[
            TaskRow(id=str(id_), state=str(state))
            for id_, state in db.execute("SELECT id, state FROM task ORDER BY no")
        ],
        calls=[
            CallRow(
                id=_call(names, no, label),
                state=str(state),
                is_tool=label is not None and tool != "command",
            )
            for no, state, label, tool in db.execute(
                "SELECT no, state, label, tool FROM call ORDER BY no"
            )
        ],
        asks=[
            AskRow(
                id=str(id_),
                task=names[_task(no)],
                kind=str(kind),
                state=str(state),
                reply=None if reply is None else str(reply),
                call=_call(names, _task(no) << _BITS | _whole(call or 0), label),
                given=str(given),
            )
            for no, id_, kind, state, reply, call, label, given in db.execute(_ASKS)
        ],
        runs=[
            RunRow(
                id=f"{names[_task(no)]}.{_own(no)}",
                call=f"{names[_task(no)]}.tc_{call}",
                state=str(state),
            )
            for no, call, state in db.execute("SELECT no, call, state FROM run ORDER BY no")
        ],
    )


_ASKS = """
SELECT ask.no, ask.id, kind, ask.state, reply, ask.call, call.label, given
FROM ask LEFT JOIN call ON call.no = (ask.no >> 20 << 20) + ask.call ORDER BY ask.no
"""


def _task(no: object) -> int:
    return _whole(no) >> _BITS


def _own(no: object) -> int:
    return _whole(no) & ((1 << _BITS) - 1)


def _call(names: dict[int, str], no: object, label: object) -> str:
    return f"{names[_task(no)]}.{label or f'tc_{_own(no)}'}"


def _whole(number: object) -> int:
    assert isinstance(number, int)
    return number

"""The one connection to SQLite, with types of our own, and the rows of a store that it keeps."""

import os
from typing import Any

import apsw
import msgspec

from adjourn.core.ask import Ask, Terms
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated, UnreadableRow
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Run, Task
from adjourn.core.trail.events import GENESIS, Event, seal_after
from adjourn.ports.store import Turn
from adjourn.stores.rows import BITS, LAST, OF_A_TASK, NoLeases, StoreRows, Values, statements_in
from adjourn.stores.shapes import (
    APPROVALS,
    FLAG,
    HEXADECIMAL,
    PROCESS,
    SPEC,
    AskRow,
    Shape,
    ask_of,
    event_body,
    event_of,
    name_or_none,
    row_of,
    short_digest,
    spec_body,
)

_WAIT_MS = 30_000
_CACHED_STATEMENTS = 100


class SqliteConnection:
    """An open database file."""

    def __init__(self, path: str) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        self._connection: Any = apsw.Connection(
            path, flags=flags, statementcachesize=_CACHED_STATEMENTS
        )
        self._connection.set_busy_timeout(_WAIT_MS)
        # Closing is on the path of every command
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Otherwise most statements are planned again for each new value
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.in_transaction)

    def all(self, statement: str, *values: object) -> list[Values]:
        """Run a statement and return its rows."""
        rows: list[Values] = self._connection.execute(statement, values).fetchall()
        return rows

    def has_changed(self, statement: str, *values: object) -> bool:
        """Run a statement that changes a row, and say whether it found one.

        By the count of the connection, for RETURNING makes it half as slow again. Nobody else can
        have written in between: a second thread that wanted to use the connection meanwhile would
        fail at its BEGIN.
        """
        self._connection.execute(statement, values).fetchall()
        return bool(self._connection.changes())

    def many(self, statement: str, rows: list[Values]) -> None:
        """Run a statement that returns nothing once for each of the rows."""
        self._connection.executemany(statement, rows).fetchall()

    def last_row(self) -> int:
        """Return the key of the row that was inserted last."""
        return int(self._connection.last_insert_rowid())

    def do(self, statements: str) -> None:
        """Run statements that return nothing."""
        self._connection.execute(statements).fetchall()

    def number(self, pragma: str) -> int:
        """Return what a pragma says."""
        return int(self._connection.pragma(pragma))

    def copy_to(self, path: str) -> None:
        """Copy everything, as of one moment, into another database file."""
        target: Any = apsw.Connection(path)
        with target.backup("main", self._connection, "main") as backup:
            backup.step(-1)
        target.execute("PRAGMA journal_mode = DELETE")
        target.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    SQL = statements_in(_file.read())

# The columns that an update writes, and those that stay as they were inserted.
_TASK_CHANGES = (
    *("state", "version", "session_id", "updated_at", "runs", "calls", "asks", "tries"),
    *("next_call", "wish", "message"),
)
_RUN_CHANGES = (
    *("state", "version", "supervisor", "updated_at", "shim", "exit_code", "signal"),
    *("message", "checkpoint_id", "paused_at", "pause_reason", "superseded_by"),
    *("session_ref", "resumable"),
)
_CALL_CHANGES = (
    *("state", "version", "digest", "claimed_by", "approved_by", "ask", "shim"),
    *("attempt",),
)
_ASK_CHANGES = (
    *("state", "expires_at", "settled_at", "settled_by", "reply", "level"),
    *("snoozed_until", "given", "remind_at"),
)
_TASKS = Shape(
    Task,
    called="{id}",
    columns=("id", "created_at", "slot", *_TASK_CHANGES),
    known=("spec",),
    as_column={"slot": HEXADECIMAL, "spec": SPEC},
)
_RUNS = Shape(
    Run,
    called="{task_id}.{number}",
    columns=("call", "session_id", "created_at", "resumed_from", "restart_of", *_RUN_CHANGES),
    known=("task_id", "number"),
    as_column={"shim": PROCESS, "resumable": FLAG},
)
_CALLS = Shape(
    Call,
    called="{task_id}.tc_{number}",
    columns=("tool", "nonce", "label", *_CALL_CHANGES),
    known=("task_id", "number", "body"),
    as_column={"digest": HEXADECIMAL, "shim": PROCESS},
)


class _AskBody(msgspec.Struct, array_like=True):
    """What an ask says, apart from how it stands."""

    prompt: str
    choices: tuple[str, ...] = ()
    key: str | None = None
    manifest: str | None = None
    gate: bool = False
    terms: Terms = Terms()
    replaces: str | None = None
    label: str | None = None
    review: bool = False
    escalate_to: tuple[str, ...] = ()


_ask_bodies = msgspec.msgpack.Decoder(_AskBody)
_ASKS = Shape(
    AskRow,
    called="{id}",
    columns=("id", "kind", "run", "created_at", "slot", "call", *_ASK_CHANGES),
    as_column={"slot": HEXADECIMAL, "given": APPROVALS},
    read_body=lambda body: msgspec.structs.asdict(_ask_bodies.decode(body)),
)


class SqliteRows(StoreRows, NoLeases):
    """Reads at once, and writes at once except for events, which are written together.

    The same object serves every transaction of a connection: `discard` ends one.
    """

    def __init__(self, db: SqliteConnection) -> None:
        self._db = db
        self.unreadable: dict[str, UnreadableRow] = {}
        self._numbers: dict[str, int] = {}
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._newest_seal: bytes | None = None
        self._events: list[Values] = []  # appended and not yet written
        # The newest event of this transaction: its place and its seal
        self.written: tuple[int, bytes] | None = None
        self.opens_gate = False  # whether this transaction lets a call start

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._db.all(SQL[query], *values)

    def _execute(self, query: str, *values: object) -> None:
        self._db.all(SQL[query], *values)

    def _swap(self, query: str, *values: object, name: str) -> None:
        """Run an update with its guard in the WHERE, or raise Outdated."""
        if not self._db.has_changed(SQL[query], *values):
            raise Outdated(f"{name} was changed by someone else at the same moment")

    def _no(self, task_id: str) -> int:
        if task_id not in self._numbers:
            row = self._one("task_no", name_or_none(task_id))
            if row is None:
                raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
            self._numbers[task_id] = int(row[0])
        return self._numbers[task_id]

    # --- tasks ------------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task:
        row = self._one("task_by_id", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return self._task(row)

    def _task(self, row: Values) -> Task:
        _, spec, *columns = row
        return _TASKS.value(columns, spec=spec)

    def running(self) -> list[Task]:
        return self.tasks(states=(TaskState.RUNNING,), limit=-1)[::-1]

    def add_task(self, task: Task) -> None:
        ((no,),) = self._all("insert_task", *_TASKS.columns(task), task.spec.pool)
        self._execute("insert_spec", no, spec_body(task.spec))

    def save_task(self, old: Task, new: Task) -> None:
        no = self._no(old.id)
        changes = _TASKS.columns(new, of=_TASK_CHANGES)
        self._swap("update_task", *changes, no, old.version, old.state, name=old.id)
        if new.spec is not old.spec:
            self._execute("update_spec", no, spec_body(new.spec))

    # --- runs and calls ---------------------------------------------------------------------------

    def _run_of(self, task_id: str, row: Values) -> Run:
        no, *columns = row
        return _RUNS.value(columns, task_id=task_id, number=no & LAST)

    def add_run(self, run: Run) -> None:
        self._execute("insert_run", self._key(run.task_id, run.number), *_RUNS.columns(run))

    def save_run(self, old: Run, new: Run) -> None:
        no = self._key(old.task_id, old.number)
        changes = _RUNS.columns(new, of=_RUN_CHANGES)
        self._swap("update_run", *changes, no, old.version, old.state, name=old.id)

    def _call_of(self, task_id: str, row: Values) -> Call:
        no, body, *columns = row
        return _CALLS.value(columns, task_id=task_id, number=no & LAST, body=body)

    def add_call(self, call: Call) -> None:
        no = self._key(call.task_id, call.number)
        self._execute("insert_call", no, *_CALLS.columns(call))
        self._execute("insert_call_body", no, call.body)

    def save_call(self, old: Call, new: Call) -> None:
        if new.state is CallState.EXECUTING:
            self.opens_gate = True
        no = self._key(old.task_id, old.number)
        guard = (old.version, old.state, bytes.fromhex(old.digest), old.claimed_by)
        changes = _CALLS.columns(new, of=_CALL_CHANGES)
        self._swap("update_call", *changes, no, *guard, name=old.id)
        if new.digest != old.digest:
            self._execute("update_call_body", no, new.body)

    # --- asks and turns ---------------------------------------------------------------------------

    def _ask(self, row: Values) -> Ask:
        no, body, task_id, *columns = row
        self._numbers[task_id] = no >> BITS
        return _ASKS.made(ask_of, columns, body, task_id=task_id, number=no & LAST)

    def add_ask(self, ask: Ask) -> None:
        no = self._key(ask.task_id, ask.number)
        row = row_of(ask)
        self._execute("insert_ask", no, *_ASKS.columns(row))
        body = msgspec.convert(row, _AskBody, from_attributes=True)
        self._execute("insert_ask_body", no, msgspec.msgpack.encode(body))

    def save_ask(self, old: Ask, new: Ask) -> None:
        no = self._key(old.task_id, old.number)
        changes = _ASKS.columns(row_of(new), of=_ASK_CHANGES)
        self._swap("update_ask", *changes, no, old.state, name=old.id)

    def turns_left_open(self, run_id: str) -> list[Turn]:
        rows = self._all("turns_left_open", self._run_key(run_id))
        return [Turn(run_id=run_id, key=kind, thing=thing, left_open=True) for kind, thing in rows]

    def add_turn(self, turn: Turn) -> None:
        key = (short_digest(turn.key), turn.key.partition(":")[0] + ":")
        run = self._run_key(turn.run_id)
        self._execute("insert_turn", run, *key, turn.thing, int(turn.left_open))

    # --- the trail --------------------------------------------------------------------------------

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        last = self._newest_seal
        if last is None:
            row = self._one("last_seal")
            last = bytes(row[0]) if row else GENESIS
        self._newest_seal = seal_after(last, link)
        self._events.append((no, event_body(event), self._newest_seal))

    def _untold(self, task_id: str, no: int) -> list[Event]:
        return [event_of(task_id, body) for owner, body, _ in reversed(self._events) if owner == no]

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        ((no, head),) = self._all("head", task_id)
        return no, head or GENESIS

    def _write_events(self) -> None:
        if self._events:
            self._db.many(SQL["insert_event"], self._events)
            self.written = (self._db.last_row(), bytes(self._events[-1][2]))
            self._events.clear()

    def flush(self) -> None:
        self._write_events()
        self._db.many(SQL["update_head"], list(self._heads.values()))
        self.discard()

    def discard(self) -> None:
        """Forget what was true in a view or a transaction that is over."""
        self._numbers.clear()
        self._heads.clear()
        self._events.clear()
        self._newest_seal = None

    def seal_at(self, place: int) -> bytes | None:
        """Return the seal of the event at a place of the trail, if there is one."""
        row = self._one("seal_at", place)
        return bytes(row[0]) if row else None

    def clear_damaged(self, task: Task) -> None:
        no, span = self._no(task.id), self._span(task.id)
        for table in OF_A_TASK:
            self._execute(f"forget_{table}", *span)
        for query in ("forget_documents", "forget_spec"):
            self._execute(query, no)
        self._execute("insert_spec", no, spec_body(task.spec))
        changes = (task.state.value, task.session_id, task.updated_at, task.message)
        self._execute("clear_task", no, *changes)

    def forget_task(self, task_id: str) -> None:
        super().forget_task(task_id)
        self._numbers.pop(task_id, None)

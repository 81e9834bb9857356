"""Tasks and their runs, as rows."""

import os

import msgspec

from adjourn.core.ask import Ask, AskKind, Terms
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import PauseReason, ProcessId, Run, RunState, Task, Wish, run_id
from adjourn.core.trail.events import GENESIS, Event, seal_after
from adjourn.ports.store import Turn
from adjourn.stores.bodies import (
    event_body,
    event_of,
    name_or_none,
    prefix_range,
    short_digest,
    spec_body,
    spec_of,
)
from adjourn.stores.rows import (
    BITS,
    LAST,
    Asks,
    Belongings,
    Numbered,
    Tasks,
    Trail,
    Values,
    statements_in,
)
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
        # The newest event of this transaction: its place and its seal
        self.written: tuple[int, bytes] | None = None
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


class TaskRows(Tasks, Steps):
    """What is to be done, and each time that somebody tried."""

    def task(self, task_id: str) -> Task:
        """Return the task, or raise NotFound."""
        row = self._one("task_by_id", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return self._task(row)

    def running(self) -> list[Task]:
        """Return every task that is running."""
        return self.tasks(states=(TaskState.RUNNING,), limit=-1)[::-1]

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        ((no,),) = self._all(
            "insert_task",
            task.id,
            task.state,
            task.version,
            task.session_id,
            task.created_at,
            task.updated_at,
            task.runs,
            task.calls,
            task.asks,
            task.tries,
            task.next_call,
            task.wish,
            task.message,
            blob(task.slot),
            task.spec.pool,
        )
        self._run("insert_spec", no, spec_body(task.spec))

    def save_task(self, old: Task, new: Task) -> None:
        """Replace a task."""
        no = self._no(old.id)
        self._swap(
            "update_task",
            new.state,
            new.version,
            new.session_id,
            new.updated_at,
            new.runs,
            new.calls,
            new.asks,
            new.tries,
            new.next_call,
            new.wish,
            new.message,
            no,
            old.version,
            old.state,
            name=old.id,
        )
        if new.spec is not old.spec:
            self._run("update_spec", no, spec_body(new.spec))

    def _task(self, row: Values) -> Task:
        return Task(
            id=row[1],
            spec=spec_of(row[2]),
            state=TaskState(row[3]),
            version=row[4],
            session_id=row[5],
            created_at=row[6],
            updated_at=row[7],
            runs=row[8],
            calls=row[9],
            asks=row[10],
            tries=row[11],
            next_call=row[12],
            wish=Wish(row[13]) if row[13] else None,
            message=row[14],
            slot=as_hex(row[15]),
        )

    # --- runs -------------------------------------------------------------------------------------

    def run(self, task_id: str, number: int) -> Run:
        """Return one run, or raise NotFound."""
        row = self._one("run", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no run {run_id(task_id, number)}", way_out=f"adjourn runs {task_id}")
        return _run(task_id, row)

    def runs(self, task_id: str) -> list[Run]:
        """Return all runs of a task."""
        return [_run(task_id, row) for row in self._all("runs", *self._span(task_id))]

    def run_of_checkpoint(self, prefix: str) -> Run | None:
        """Return the one run whose checkpoint the prefix names."""
        found = self._all("runs_like", *prefix_range(prefix))
        if len(found) != 1:
            return None
        no = found[0][0]
        ((task_id,),) = self._all("task_id", no >> BITS)
        return self.run(task_id, no & LAST)

    def add_run(self, run: Run) -> None:
        """Keep a new run."""
        self._run(
            "insert_run",
            self._key(run.task_id, run.number),
            run.state,
            run.version,
            run.call,
            run.supervisor,
            run.session_id,
            run.created_at,
            run.updated_at,
            as_json(run.shim),
            run.exit_code,
            run.signal,
            run.message,
            run.checkpoint_id,
            run.paused_at,
            run.pause_reason,
            run.resumed_from,
            run.restart_of,
            run.superseded_by,
            run.session_ref,
            run.resumable,
        )

    def save_run(self, old: Run, new: Run) -> None:
        """Replace a run."""
        self._swap(
            "update_run",
            new.state,
            new.version,
            new.supervisor,
            new.updated_at,
            as_json(new.shim),
            new.exit_code,
            new.signal,
            new.message,
            new.checkpoint_id,
            new.paused_at,
            new.pause_reason,
            new.superseded_by,
            new.session_ref,
            new.resumable,
            self._key(old.task_id, old.number),
            old.version,
            old.state,
            name=old.id,
        )


def _run(task_id: str, row: Values) -> Run:
    return Run(
        task_id=task_id,
        number=row[0],
        state=RunState(row[1]),
        version=row[2],
        call=row[3],
        supervisor=row[4],
        session_id=row[5],
        created_at=row[6],
        updated_at=row[7],
        shim=as_shim(row[8]),
        exit_code=row[9],
        signal=row[10],
        message=row[11],
        checkpoint_id=row[12],
        paused_at=row[13],
        pause_reason=PauseReason(row[14]) if row[14] else None,
        resumed_from=row[15],
        restart_of=row[16],
        superseded_by=row[17],
        session_ref=row[18],
        resumable=bool(row[19]),
    )


class CallRows(Belongings, Steps):
    """What is run at most once, and what belongs to a task beside it."""

    def call(self, task_id: str, number: int) -> Call:
        """Return one call, or raise NotFound."""
        row = self._one("call", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no call {task_id}.tc_{number}", way_out=f"adjourn show {task_id}")
        return _call(task_id, row)

    def calls(self, task_id: str) -> list[Call]:
        """Return all calls of a task."""
        return [_call(task_id, row) for row in self._all("calls", *self._span(task_id))]

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        """Return the calls of a task in one open state."""
        return [_call(task_id, row) for row in self._all("calls_in", *self._span(task_id), state)]

    def call_labelled(self, task_id: str, label: str) -> Call | None:
        """Return the call that an agent calls so."""
        row = self._one("call_labelled", label, *self._span(task_id))
        return _call(task_id, row) if row else None

    def add_call(self, call: Call) -> None:
        """Keep a new call."""
        no = self._key(call.task_id, call.number)
        self._run(
            "insert_call",
            no,
            call.state,
            call.version,
            call.tool,
            bytes.fromhex(call.digest),
            call.nonce,
            call.claimed_by,
            call.approved_by,
            call.ask,
            call.label,
            as_json(call.shim),
            call.attempt,
        )
        self._run("insert_call_body", no, call.body)

    def save_call(self, old: Call, new: Call) -> None:
        """Replace a call."""
        if new.state is CallState.EXECUTING:
            self.opens_gate = True
        no = self._key(old.task_id, old.number)
        self._swap(
            "update_call",
            new.state,
            new.version,
            bytes.fromhex(new.digest),
            new.claimed_by,
            new.approved_by,
            new.ask,
            as_json(new.shim),
            new.attempt,
            no,
            old.version,
            old.state,
            bytes.fromhex(old.digest),
            old.claimed_by,
            name=old.id,
        )
        if new.digest != old.digest:
            self._run("update_call_body", no, new.body)

    # --- turns ------------------------------------------------------------------------------------

    def turns_left_open(self, run_id: str) -> list[Turn]:
        """Return what a run asked for and did not get."""
        rows = self._all("turns_left_open", self._run_key(run_id))
        return [Turn(run_id=run_id, key=kind, thing=thing, left_open=True) for kind, thing in rows]

    def add_turn(self, turn: Turn) -> None:
        """Remember a turn."""
        kind = turn.key.partition(":")[0] + ":"
        self._run(
            "insert_turn",
            self._run_key(turn.run_id),
            short_digest(turn.key),
            kind,
            turn.thing,
            int(turn.left_open),
        )


def _call(task_id: str, row: Values) -> Call:
    return Call(
        task_id=task_id,
        number=row[0],
        state=CallState(row[1]),
        version=row[2],
        tool=row[3],
        digest=row[4].hex(),
        nonce=row[5],
        claimed_by=row[6],
        approved_by=row[7],
        ask=row[8],
        label=row[9],
        shim=as_shim(row[10]),
        attempt=row[11],
        body=row[12],
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


_ask_bodies = msgspec.msgpack.Decoder(_AskBody)


class AskRows(Asks, Steps):
    """What people are asked."""

    def add_ask(self, ask: Ask) -> None:
        """Keep a new ask."""
        no = self._key(ask.task_id, ask.number)
        self._run(
            "insert_ask",
            no,
            ask.id,
            ask.state,
            ask.kind,
            ask.run,
            ask.created_at,
            blob(ask.slot),
            ask.call,
            ask.expires_at,
            ask.settled_at,
            ask.settled_by,
            ask.reply,
            ask.level,
            ask.snoozed_until,
        )
        body = _AskBody(
            prompt=ask.prompt,
            choices=ask.choices,
            key=ask.key,
            manifest=ask.manifest,
            gate=ask.gate,
            terms=ask.terms,
            replaces=ask.replaces,
            label=ask.label,
            review=ask.review,
        )
        self._run("insert_ask_body", no, msgspec.msgpack.encode(body))

    def save_ask(self, old: Ask, new: Ask) -> None:
        """Replace an ask."""
        no = self._key(old.task_id, old.number)
        now = (
            new.state,
            new.expires_at,
            new.settled_at,
            new.settled_by,
            new.reply,
            new.level,
            new.snoozed_until,
        )
        self._swap("update_ask", *now, no, old.state, name=old.id)

    def _ask(self, row: Values) -> Ask:
        self._numbers[row[15]] = row[0] >> BITS
        return _ask(row)


def _ask(row: Values) -> Ask:
    body = _ask_bodies.decode(row[14])
    return Ask(
        id=row[1],
        task_id=row[15],
        number=row[0] & LAST,
        state=AskState(row[2]),
        kind=AskKind(row[3]),
        run=row[4],
        created_at=row[5],
        slot=as_hex(row[6]),
        call=row[7],
        expires_at=row[8],
        settled_at=row[9],
        settled_by=row[10],
        reply=row[11],
        level=row[12],
        snoozed_until=row[13],
        prompt=body.prompt,
        choices=body.choices,
        key=body.key,
        manifest=body.manifest,
        gate=body.gate,
        terms=body.terms,
        replaces=body.replaces,
        label=body.label,
        review=body.review,
    )


class TrailRows(Trail, Steps):
    """What happened, sealed as it is told and written all at once."""

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        self._newest_seal = seal_after(self._last_seal(), link)
        self._events.append((no, event_body(event), self._newest_seal))

    def _untold(self, task_id: str, no: int) -> list[Event]:
        return [event_of(task_id, body) for owner, body, _ in reversed(self._events) if owner == no]

    def _last_seal(self) -> bytes:
        if self._newest_seal is not None:
            return self._newest_seal
        row = self._one("last_seal")
        return row[0] if row else GENESIS

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        ((no, head),) = self._all("head", task_id)
        return no, head or GENESIS

    def flush(self) -> None:
        """Write the events and the heads of the chains that grew.

        The transaction is about to commit.
        """
        self._write_events()
        self._db.many(SQL["update_head"], list(self._heads.values()))
        self.discard()

    def seal_at(self, place: int) -> bytes | None:
        """Return the seal of the event at a place of the trail, if there is one."""
        row = self._one("seal_at", place)
        return bytes(row[0]) if row else None

    def _write_events(self) -> None:
        if self._events:
            self._db.many(SQL["insert_event"], self._events)
            self.written = (self._db.last_row(), bytes(self._events[-1][2]))
            self._events.clear()

    def discard(self) -> None:
        """Forget what was true in a view or a transaction that is over."""
        self._numbers.clear()
        self._heads.clear()
        self._events.clear()
        self._newest_seal = None

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        super().forget_task(task_id)
        self._numbers.pop(task_id, None)

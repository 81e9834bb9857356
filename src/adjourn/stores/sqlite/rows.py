"""Turns rows into values and values into rows."""

import os
from collections.abc import Sequence

import msgspec

from adjourn.core.ask import Ask, AskKind
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated
from adjourn.core.events import GENESIS, Event, Happened, Sealed, link_after, seal_after
from adjourn.core.identity import ProcessId
from adjourn.core.outbox import Outbox
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import PauseReason, Run, RunState, Task, Wish, number_of_run, run_id, task_of_run
from adjourn.core.terms import Terms
from adjourn.ports.store import Turn
from adjourn.stores.bodies import (
    author_of,
    event_body,
    event_of,
    moment_of,
    name_or_none,
    prefix_range,
    sealed_of,
    short_digest,
    spec_body,
    spec_of,
)
from adjourn.stores.locks import NoLeases
from adjourn.stores.sqlite.database import Database, Values

_BITS = 20
_LAST = (1 << _BITS) - 1
_NEWEST = 1 << 62


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
_shims = msgspec.json.Decoder(ProcessId)


def _named(text: str) -> dict[str, str]:
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name: statement for name, _, statement in parts}


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    SQL = _named(_file.read())


class Rows(NoLeases):
    """All rows of the database: a view inside a read, a change inside a transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._numbers: dict[str, int] = {}
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._seal: bytes | None = None
        self._events: list[Values] = []  # appended and not yet written

    # --- tasks -----------------------------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task:
        """Return the task, or raise NotFound."""
        row = self._one("task_by_id", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return _task(row)

    def task_in_slot(self, slot: str) -> Task | None:
        """Return the task that was started for that slot, if there is one."""
        row = self._one("task_in_slot", bytes.fromhex(slot))
        return _task(row) if row else None

    def tasks_like(self, prefix: str) -> list[str]:
        """Return a few ids of tasks that the prefix fits."""
        return [row[0] for row in self._all("tasks_like", *prefix_range(prefix))]

    def tasks(self, *, states: Sequence[TaskState] = (), limit: int, before: str | None = None) -> list[Task]:
        """Return the newest tasks first."""
        place = self._no(before) if before else _NEWEST
        if not states:
            return [_task(row) for row in self._all("tasks_before", place, limit)]
        found = [row for state in states for row in self._all("tasks_in_state_before", state, place, limit)]
        return [_task(row) for row in sorted(found, reverse=True)[:limit]]

    def running(self) -> list[Task]:
        """Return every task that is running."""
        return [_task(row) for row in self._all("tasks_in_state_before", TaskState.RUNNING, _NEWEST, -1)][::-1]

    def unwanted(self) -> set[str]:
        """Return the tasks that run and that somebody wants to stop."""
        return {row[0] for row in self._all("unwanted_tasks")}

    def queued(self, *, pool: str, limit: int) -> list[Task]:
        """Return the tasks of a pool that can be started, oldest first."""
        return [_task(row) for row in self._all("queued", pool, limit)]

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
            _blob(task.slot),
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

    # --- runs ------------------------------------------------------------------------------------------------------

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
        ((task_id,),) = self._all("task_id", no >> _BITS)
        return self.run(task_id, no & _LAST)

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
            _json(run.shim),
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
            _json(new.shim),
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

    # --- calls -----------------------------------------------------------------------------------------------------

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
            _json(call.shim),
            call.attempt,
        )
        self._run("insert_call_body", no, call.body)

    def save_call(self, old: Call, new: Call) -> None:
        """Replace a call."""
        no = self._key(old.task_id, old.number)
        self._swap(
            "update_call",
            new.state,
            new.version,
            bytes.fromhex(new.digest),
            new.claimed_by,
            new.approved_by,
            new.ask,
            _json(new.shim),
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

    # --- asks ------------------------------------------------------------------------------------------------------

    def ask(self, ask_id: str) -> Ask:
        """Return the ask, or raise NotFound."""
        row = self._one("ask_by_id", name_or_none(ask_id))
        if row is None:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn inbox")
        return self._ask(row)

    def asks_like(self, prefix: str) -> list[str]:
        """Return a few ids of asks that begin with the prefix."""
        return [row[0] for row in self._all("asks_like", *prefix_range(prefix))]

    def asks(self, task_id: str) -> list[Ask]:
        """Return all asks of a task."""
        return [self._ask(row) for row in self._all("asks", *self._span(task_id))]

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        """Return the asks that one run opened."""
        return [self._ask(row) for row in self._all("asks_of_run", *self._span(task_id), run)]

    def open_asks_of(self, task_id: str) -> list[Ask]:
        """Return the open asks of a task."""
        return [self._ask(row) for row in self._all("open_asks_of", *self._span(task_id))]

    def ask_in_slot(self, slot: str) -> Ask | None:
        """Return the newest ask in that slot that was not withdrawn."""
        row = self._one("ask_in_slot", bytes.fromhex(slot))
        return self._ask(row) if row else None

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        """Return the n-th ask of a task, if there is one."""
        row = self._one("ask_by_no", self._key(task_id, number))
        return self._ask(row) if row else None

    def open_asks(self, *, limit: int, after: str | None = None, awake_at: int | None = None) -> list[Ask]:
        """Return open asks of all tasks, oldest first."""
        place = self._place(after) if after else (-1, -1)
        if awake_at is None:
            return [self._ask(row) for row in self._all("open_asks", *place, limit)]
        return [self._ask(row) for row in self._all("awake_asks", *place, limit, awake_at)]

    def snoozed_asks(self, *, now: int, limit: int) -> list[Ask]:
        """Return the open asks that are snoozed, those first that come back first."""
        return [self._ask(row) for row in self._all("snoozed_asks", now, limit)]

    def count_snoozed_asks(self, *, now: int) -> int:
        """Return how many open asks are snoozed."""
        ((count,),) = self._all("count_snoozed_asks", now)
        return int(count)

    def _place(self, ask_id: str) -> Values:
        row = self._one("ask_place", name_or_none(ask_id))
        if row is None:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn inbox")
        return row

    def expired_asks(self, *, now: int) -> list[Ask]:
        """Return the open asks whose time is over."""
        return [self._ask(row) for row in self._all("expired_asks", now)]

    def count_open_asks(self) -> int:
        """Return how many asks are open."""
        ((count,),) = self._all("count_open_asks")
        return int(count)

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
            _blob(ask.slot),
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
        now = (new.state, new.expires_at, new.settled_at, new.settled_by, new.reply, new.level, new.snoozed_until)
        self._swap("update_ask", *now, no, old.state, name=old.id)

    def _ask(self, row: Values) -> Ask:
        self._numbers[row[15]] = row[0] >> _BITS
        return _ask(row)

    # --- turns -----------------------------------------------------------------------------------------------------

    def count_turns(self, run_id: str, key: str) -> int:
        """Return how often a run has asked for that key."""
        ((count,),) = self._all("count_turns", self._run_key(run_id), short_digest(key))
        return int(count)

    def turns_left_open(self, run_id: str) -> list[Turn]:
        """Return what a run asked for and did not get."""
        rows = self._all("turns_left_open", self._run_key(run_id))
        return [Turn(run_id=run_id, key=kind, thing=thing, left_open=True) for kind, thing in rows]

    def add_turn(self, turn: Turn) -> None:
        """Remember a turn."""
        kind = turn.key.partition(":")[0] + ":"
        self._run("insert_turn", self._run_key(turn.run_id), short_digest(turn.key), kind, turn.thing, int(turn.left_open))

    def close_turn(self, run_id: str, thing: str) -> None:
        """Remember that a run got what it had asked for."""
        self._run("close_turn", self._run_key(run_id), thing)

    # --- documents -------------------------------------------------------------------------------------------------

    def document(self, task_id: str, name: str) -> bytes | None:
        """Return what a task keeps under that name, if anything."""
        row = self._one("document", self._no(task_id), name)
        return row[0] if row else None

    def keep_document(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task."""
        no = self._no(task_id)
        self._run("drop_document", no, name)
        if body is not None:
            self._run("insert_document", no, name, body)

    def shared_document(self, name: str) -> bytes | None:
        """Return what the store keeps under that name, if anything."""
        row = self._one("shared_document", name)
        return bytes(row[0]) if row else None

    def keep_shared_document(self, name: str, body: bytes) -> None:
        """Keep a document that belongs to no task."""
        self._run("keep_shared_document", name, body)

    # --- transcripts -----------------------------------------------------------------------------------------------

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        """Return a transcript, or so much of it after a message."""
        first, last = self._span(task_id)
        return [body for (body,) in self._all("messages", first + after, last)]

    def count_messages(self, task_id: str) -> int:
        """Return how many messages a transcript has."""
        row = self._one("last_message", *self._span(task_id))
        return int(row[0]) & _LAST if row else 0

    def add_message(self, task_id: str, number: int, body: bytes) -> None:
        """Keep the next message of a transcript."""
        self._run("insert_message", self._key(task_id, number), body)

    # --- the audit trail -------------------------------------------------------------------------------------------

    def events(self, task_id: str) -> list[Event]:
        """Return what happened to a task."""
        self._write_events()
        return [event_of(task_id, body) for (body,) in self._all("events", self._no(task_id))]

    def requester(self, task_id: str) -> str:
        """Return who asked for a task."""
        row = self._one("first_event", self._no(task_id))
        if row is None:  # it was made in this very transaction
            self._write_events()
            row = self._one("first_event", self._no(task_id))
        return author_of(row[0]) if row and row[0] is not None else ""

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        """Return what happened to a task last, newest first."""
        self._write_events()
        rows = self._all("last_events", self._no(task_id), limit)
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, body, seal in rows]

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        """Return the audit trail of the whole store."""
        self._write_events()
        return [sealed_of(*row) for row in self._all("trail", after, limit)]

    def chain_head(self, task_id: str) -> bytes:
        """Return the link of the newest event of a task."""
        return (self._heads.get(task_id) or self._stored_head(task_id))[1]

    def trail_head(self) -> tuple[int, bytes]:
        """Return the place and the seal of the newest event."""
        self._write_events()
        row = self._one("trail_head")
        return (int(row[0]), bytes(row[1])) if row else (0, GENESIS)

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        """Return what happened after a place of the trail."""
        self._write_events()
        rows = self._all("happened", after, limit)
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, task_id, body, seal in rows]

    def place_before(self, moment: int) -> int:
        """Return the place after which everything happened at that moment or later."""
        self._write_events()
        place = _NEWEST
        while page := self._all("events_before", place):
            for no, body in page:
                if moment_of(body) < moment:
                    return int(no)
            place = page[-1][0]
        return 0

    def outbox(self, notifier: str) -> Outbox | None:
        """Return how far a notifier is."""
        row = self._one("outbox", notifier)
        return msgspec.msgpack.decode(row[0], type=Outbox) if row else None

    def save_outbox(self, notifier: str, outbox: Outbox) -> None:
        """Keep how far a notifier is."""
        self._run("save_outbox", notifier, msgspec.msgpack.encode(outbox))

    def append(self, event: Event) -> None:
        """Add to the audit trail."""
        no, head = self._heads.get(event.task_id) or self._stored_head(event.task_id)
        link = link_after(head, event)
        self._seal = seal_after(self._last_seal(), link)
        self._heads[event.task_id] = (no, link)
        self._events.append((no, event_body(event), self._seal))

    def flush(self) -> None:
        """Write the events and the heads of the chains that grew; the transaction is about to commit."""
        self._write_events()
        self._db.many(SQL["update_head"], list(self._heads.values()))
        self.discard()

    def _write_events(self) -> None:
        self._db.many(SQL["insert_event"], self._events)
        self._events.clear()

    def discard(self) -> None:
        """Forget what was true in a view or a transaction that is over."""
        self._numbers.clear()
        self._heads.clear()
        self._events.clear()
        self._seal = None

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        ((no, head),) = self._all("head", task_id)
        return no, head or GENESIS

    def _last_seal(self) -> bytes:
        if self._seal is not None:
            return self._seal
        row = self._one("last_seal")
        return row[0] if row else GENESIS

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        no, span = self._no(task_id), self._span(task_id)
        self._forget_events(task_id, no)
        for table in ("runs", "calls", "call_bodies", "asks", "ask_bodies", "turns", "messages"):
            self._run(f"forget_{table}", *span)
        self._run("forget_documents", no)
        self._run("forget_spec", no)
        self._run("forget_task", no)
        self._heads.pop(task_id, None)
        self._numbers.pop(task_id, None)

    def _forget_events(self, task_id: str, no: int) -> None:
        self._write_events()
        link = GENESIS
        for event_no, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            self._run("forget_event", event_no, link)

    # --- the small steps -------------------------------------------------------------------------------------------

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._db.all(SQL[query], *values)

    def _one(self, query: str, *values: object) -> Values | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

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

    def _key(self, task_id: str, number: int) -> int:
        return (self._no(task_id) << _BITS) + number

    def _run_key(self, name: str) -> int:
        return self._key(task_of_run(name), number_of_run(name))

    def _span(self, task_id: str) -> tuple[int, int]:
        first = self._no(task_id) << _BITS
        return first, first + _LAST


def _task(row: Values) -> Task:
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
        slot=_hex(row[15]),
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
        shim=_shims.decode(row[8]) if row[8] else None,
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
        shim=_shims.decode(row[10]) if row[10] else None,
        attempt=row[11],
        body=row[12],
    )


def _ask(row: Values) -> Ask:
    body = _ask_bodies.decode(row[14])
    return Ask(
        id=row[1],
        task_id=row[15],
        number=row[0] & _LAST,
        state=AskState(row[2]),
        kind=AskKind(row[3]),
        run=row[4],
        created_at=row[5],
        slot=_hex(row[6]),
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


def _blob(hexadecimal: str | None) -> bytes | None:
    return bytes.fromhex(hexadecimal) if hexadecimal else None


def _hex(blob: bytes | None) -> str | None:
    return blob.hex() if blob else None


def _json(shim: ProcessId | None) -> str | None:
    return msgspec.json.encode(shim).decode() if shim else None

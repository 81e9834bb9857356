"""Keeps tasks in memory: the model that the other stores must agree with."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from threading import RLock
from typing import TypeVar

from msgspec.structs import replace

from adjourn.core.ask import ApprovalAsk, Ask, AskKind, UncertainAsk, expiry_of
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated, StoreProblem, UnreadableRow
from adjourn.core.outbox import Outbox
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Run, Task, run_id, task_of_run
from adjourn.core.trail.events import (
    GENESIS,
    Event,
    Happened,
    Sealed,
    forgotten,
    link_after,
    seal_after,
)
from adjourn.ports.store import Turn
from adjourn.stores.rows import NoLeases, oldest_fitting

_FEW = 3


class MemoryStore:
    """A store that lives as long as its process.

    Transactions are copies that replace what was there.
    """

    def __init__(self) -> None:
        self._rows = MemoryRows()
        self._lock = RLock()
        self._listeners: list[PipeListener] = []
        self.unreadable: dict[str, UnreadableRow] = {}  # values cannot be damaged

    def require_ours(self) -> None:
        """Refuse nothing: it lives in this process alone."""

    @contextmanager
    def read(self) -> Generator["MemoryRows", None, None]:
        yield self._rows

    @contextmanager
    def change(self) -> Generator["MemoryRows", None, None]:
        with self._lock:
            rows = self._rows.copied()
            yield rows
            self._rows = rows
        for listener in self._listeners:
            listener.wake()

    def next_queued(
        self,
        pool: str,
        *,
        supervisor: str,  # noqa: ARG002 -- a name of the port
        fits: Callable[[Task], bool],
    ) -> Task | None:
        with self.read() as view:
            return oldest_fitting(view, pool, fits)

    def run_key(self, task_id: str) -> str | None:  # noqa: ARG002 -- there are no logins
        return None

    def listen(self) -> "PipeListener":
        listener = PipeListener(self._listeners.remove)
        self._listeners.append(listener)
        return listener

    def close(self) -> None:
        """Let go of the store."""


class PipeListener:
    """A pipe that fills with wake-ups."""

    trouble: str | None = None  # it hears as long as it is there

    def __init__(self, forget: "Callable[[PipeListener], None]") -> None:
        self._forget = forget
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        """Put a wake-up in; a full pipe has one waiting already."""
        with suppress(BlockingIOError):
            os.write(self._writer, b"\1")

    def drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def close(self) -> None:
        self._forget(self)
        os.close(self._reader)
        os.close(self._writer)


class MemoryRows(NoLeases):
    """All rows, as of one moment."""

    def __init__(self) -> None:
        self.unreadable: dict[str, UnreadableRow] = {}
        self._tasks: dict[str, Task] = {}
        self._runs: dict[tuple[str, int], Run] = {}
        self._calls: dict[tuple[str, int], Call] = {}
        self._asks: dict[str, Ask] = {}
        self._turns: list[Turn] = []
        self._documents: dict[tuple[str, str], bytes] = {}
        self._shared_documents: dict[str, bytes] = {}
        self._messages: dict[tuple[str, int], bytes] = {}
        self._trail: list[Sealed] = []
        self._heads: dict[str, bytes] = {}
        self._outboxes: dict[str, Outbox] = {}

    def copied(self) -> "MemoryRows":
        """Return rows that can be changed without touching these."""
        rows = MemoryRows()
        for name, value in vars(self).items():
            setattr(rows, name, copy(value))
        return rows

    def task(self, task_id: str) -> Task:
        return _found(self._tasks.get(task_id), f"no task {task_id}")

    def tasks_like(self, prefix: str) -> list[str]:
        by_id = [task_id for task_id in self._tasks if task_id.startswith(prefix)]
        by_checkpoint = [
            run.task_id
            for run in self._runs.values()
            if (run.checkpoint_id or "").startswith(prefix)
        ]
        return sorted({*by_id, *by_checkpoint})[:_FEW]

    def tasks(
        self, *, states: Sequence[TaskState] = (), limit: int, before: str | None = None
    ) -> list[Task]:
        newest = list(reversed(self._tasks.values()))
        if before:
            newest = newest[newest.index(self.task(before)) + 1 :]
        return [task for task in newest if not states or task.state in states][:limit]

    def running(self) -> list[Task]:
        return [task for task in self._tasks.values() if task.state is TaskState.RUNNING]

    def current_runs(self) -> list[Run]:
        return [self.run(task.id, task.runs) for task in self.running()]

    def unwanted(self) -> set[str]:
        return {task.id for task in self.running() if task.wish}

    def queued(self, *, pool: str, limit: int) -> list[Task]:
        fitting = (
            task
            for task in self._tasks.values()
            if task.state is TaskState.QUEUED and task.spec.pool == pool
        )
        return list(fitting)[:limit]

    def run(self, task_id: str, number: int) -> Run:
        return _found(self._runs.get((task_id, number)), f"no run {run_id(task_id, number)}")

    def runs(self, task_id: str) -> list[Run]:
        return _of_task(self._runs, self.task(task_id))

    def run_of_checkpoint(self, prefix: str) -> Run | None:
        runs = [run for run in self._runs.values() if (run.checkpoint_id or "").startswith(prefix)]
        return runs[0] if len(runs) == 1 else None

    def call(self, task_id: str, number: int) -> Call:
        return _found(self._calls.get((task_id, number)), f"no call {task_id}.tc_{number}")

    def calls(self, task_id: str) -> list[Call]:
        return _of_task(self._calls, self.task(task_id))

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        return [call for call in self.calls(task_id) if call.state is state]

    def call_labelled(self, task_id: str, label: str) -> Call | None:
        return next((call for call in self.calls(task_id) if call.label == label), None)

    def ask(self, ask_id: str) -> Ask:
        if ask_id not in self._asks:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn tasks")
        return self._asks[ask_id]

    def asks_like(self, prefix: str) -> list[str]:
        return sorted(ask_id for ask_id in self._asks if ask_id.startswith(prefix))[:_FEW]

    def asks(self, task_id: str) -> list[Ask]:
        return sorted(_of_task(self._asks, self.task(task_id)), key=lambda ask: ask.number)

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        return [ask for ask in self.asks(task_id) if ask.run == run]

    def open_asks_of(self, task_id: str) -> list[Ask]:
        return [ask for ask in self.asks(task_id) if ask.is_open]

    def ask_in_slot(self, slot: str) -> Ask | None:
        fitting = [
            ask
            for ask in self._asks.values()
            if not isinstance(ask, UncertainAsk)
            and ask.slot == slot
            and ask.state is not AskState.WITHDRAWN
        ]
        return fitting[-1] if fitting else None

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        return next((ask for ask in self.asks(task_id) if ask.number == number), None)

    def open_asks(
        self,
        *,
        limit: int,
        after: str | None = None,
        before: str | None = None,
        awake_at: int | None = None,
    ) -> list[Ask]:
        place = self._place(self.ask(after)) if after else ()
        end = self._place(self.ask(before)) if before else None
        rest = sorted(
            (
                ask
                for ask in self._asks.values()
                if ask.is_open
                and self._place(ask) > place
                and (end is None or self._place(ask) < end)
                and (awake_at is None or not ask.is_snoozed(awake_at))
            ),
            key=self._place,
        )
        return rest[-limit:] if before and limit else rest[:limit]

    def open_ask_ids(self, *, awake_at: int | None = None) -> list[tuple[str, AskKind]]:
        return [(ask.id, ask.kind) for ask in self.open_asks(limit=1 << 62, awake_at=awake_at)]

    def snoozed_asks(self, *, now: int, limit: int) -> list[Ask]:
        snoozed = [
            (until, self._place(ask)[1:], ask)
            for ask in self._asks.values()
            if ask.is_open and (until := ask.snoozed_until) is not None and until > now
        ]
        return [ask for *_, ask in sorted(snoozed, key=lambda each: each[:2])][:limit]

    def count_snoozed_asks(self, *, now: int) -> int:
        return len(self.snoozed_asks(now=now, limit=1 << 62))

    def _place(self, ask: Ask) -> tuple[int, ...]:
        return ask.created_at, list(self._tasks).index(ask.task_id), ask.number

    def expired_asks(self, *, now: int) -> list[Ask]:
        over = [
            ask
            for ask in self._asks.values()
            if ask.is_open and (end := expiry_of(ask)) is not None and end <= now
        ]
        return sorted(over, key=lambda ask: self._place(ask)[1:])

    def asks_to_remind(self, *, now: int) -> list[Ask]:
        due = [
            ask
            for ask in self._asks.values()
            if ask.is_open
            and isinstance(ask, ApprovalAsk)
            and ask.remind_at is not None
            and ask.remind_at <= now
        ]
        return sorted(due, key=lambda ask: self._place(ask)[1:])

    def count_open_asks(self) -> int:
        return sum(ask.is_open for ask in self._asks.values())

    def count_turns(self, run_id: str, key: str) -> int:
        return sum(turn.key == key for turn in self._turns_of(run_id))

    def turns_left_open(self, run_id: str) -> list[Turn]:
        return [turn for turn in self._turns_of(run_id) if turn.left_open]

    def _turns_of(self, run_id: str) -> list[Turn]:
        self.task(task_of_run(run_id))
        return [turn for turn in self._turns if turn.run_id == run_id]

    def task_in_slot(self, slot: str) -> Task | None:
        return next((task for task in self._tasks.values() if task.slot == slot), None)

    def document(self, task_id: str, name: str) -> bytes | None:
        return self._documents.get((self.task(task_id).id, name))

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        name = self.task(task_id).id
        found = sorted(
            (number, body) for (owner, number), body in self._messages.items() if owner == name
        )
        return [body for number, body in found if number > after]

    def count_messages(self, task_id: str) -> int:
        return len(self.messages(task_id))

    def shared_document(self, name: str) -> bytes | None:
        return self._shared_documents.get(name)

    def events(self, task_id: str) -> list[Event]:
        name = self.task(task_id).id
        return [row.event for row in self._trail if row.event and row.event.task_id == name]

    def requester(self, task_id: str) -> str:
        return next((event.by for event in self.events(task_id)), "")

    def beginning(self, task_id: str) -> Event | None:
        return next(iter(self.events(task_id)), None)

    def newest_events(self, task_id: str, *, limit: int) -> list[Event]:
        events = self.events(task_id)[::-1]
        return events[:limit] if limit >= 0 else events

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        name = self.task(task_id).id
        rows = [row for row in reversed(self._trail) if row.event and row.event.task_id == name][
            :limit
        ]
        return [
            Happened(place=row.place, event=row.event, seal=row.seal) for row in rows if row.event
        ]

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        return self._trail[after : after + limit if limit >= 0 else None]

    def chain_head(self, task_id: str) -> bytes:
        return self._heads.get(task_id, GENESIS)

    def trail_head(self) -> tuple[int, bytes]:
        return (len(self._trail), self._trail[-1].seal) if self._trail else (0, GENESIS)

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        rows = enumerate(self._trail[after:], start=after + 1)
        return [
            Happened(place=place, event=row.event, seal=row.seal)
            for place, row in rows
            if row.event
        ][:limit]

    def place_before(self, moment: int) -> int:
        earlier = (
            row.place
            for row in reversed(self.happened(after=0, limit=len(self._trail)))
            if row.event.at < moment
        )
        return next(earlier, 0)

    def outbox(self, notifier: str) -> Outbox | None:
        return self._outboxes.get(notifier)

    def save_outbox(self, notifier: str, outbox: Outbox) -> None:
        self._outboxes[notifier] = outbox

    def add_task(self, task: Task) -> None:
        _add(self._tasks, task.id, task)

    def save_task(self, old: Task, new: Task) -> None:
        _expect(self._tasks.get(old.id) == old, old.id)
        self._tasks[new.id] = new

    def add_run(self, run: Run) -> None:
        _add(self._runs, (run.task_id, run.number), run)

    def save_run(self, old: Run, new: Run) -> None:
        _expect(self._runs.get((old.task_id, old.number)) == old, old.id)
        self._runs[new.task_id, new.number] = new

    def add_call(self, call: Call) -> None:
        _add(self._calls, (call.task_id, call.number), call)

    def save_call(self, old: Call, new: Call) -> None:
        _expect(self._calls.get((old.task_id, old.number)) == old, old.id)
        self._calls[new.task_id, new.number] = new

    def add_ask(self, ask: Ask) -> None:
        _add({other.number: other for other in self.asks(ask.task_id)}, ask.number, ask)
        _add(self._asks, ask.id, ask)

    def save_ask(self, old: Ask, new: Ask) -> None:
        _expect(self._asks.get(old.id) == old, old.id)
        self._asks[new.id] = new

    def add_turn(self, turn: Turn) -> None:
        self._turns.append(turn)

    def close_turn(self, run_id: str, thing: str) -> None:
        self._turns = [
            replace(turn, left_open=False) if (turn.run_id, turn.thing) == (run_id, thing) else turn
            for turn in self._turns
        ]

    def keep_document(self, task_id: str, name: str, body: bytes | None) -> None:
        self._documents.pop((self.task(task_id).id, name), None)
        if body is not None:
            self._documents[task_id, name] = body

    def add_message(self, task_id: str, number: int, body: bytes) -> None:
        _add(self._messages, (self.task(task_id).id, number), body)

    def flush(self) -> None:
        """Write nothing: nothing is kept back."""

    def keep_shared_document(self, name: str, body: bytes) -> None:
        self._shared_documents[name] = body

    def append(self, event: Event) -> None:
        link = link_after(self._heads.get(event.task_id, GENESIS), event)
        seal = seal_after(self._trail[-1].seal if self._trail else GENESIS, link)
        self._heads[event.task_id] = link
        self._trail.append(Sealed(event=event, seal=seal, place=len(self._trail) + 1))

    def clear_damaged(self, task: Task) -> None:
        trail = list(self._trail)
        self.forget_task(task.id)
        self._trail[:] = trail
        self._tasks[task.id] = task

    def forget_task(self, task_id: str) -> None:
        del self._tasks[self.task(task_id).id]
        self._runs = {key: run for key, run in self._runs.items() if run.task_id != task_id}
        self._calls = {key: call for key, call in self._calls.items() if call.task_id != task_id}
        self._asks = {key: ask for key, ask in self._asks.items() if ask.task_id != task_id}
        self._turns = [turn for turn in self._turns if not turn.run_id.startswith(f"{task_id}.")]
        self._documents = {key: body for key, body in self._documents.items() if key[0] != task_id}
        self._messages = {key: body for key, body in self._messages.items() if key[0] != task_id}
        self._trail = forgotten(self._trail, task_id)


Row = TypeVar("Row")
Key = TypeVar("Key", str, int, tuple[str, int])
Owned = TypeVar("Owned", Run, Call, Ask)


def _of_task(rows: dict[Key, Owned], task: Task) -> list[Owned]:
    return [row for row in rows.values() if row.task_id == task.id]


def _add(rows: dict[Key, Row], key: Key, row: Row) -> None:
    if key in rows:
        raise StoreProblem(f"{key} is there already", way_out="run the command again")
    rows[key] = row


def _found(row: Row | None, sentence: str) -> Row:
    if row is None:
        raise NotFound(sentence, way_out="adjourn tasks")
    return row


def _expect(is_unchanged: bool, name: str) -> None:  # noqa: FBT001 -- a guard reads best so
    if not is_unchanged:
        raise Outdated(f"{name} was changed by someone else at the same moment")

"""What every database does alike, by the names of its statements.

How rows are numbered and found, the trail, what tasks keep.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from adjourn.core.ask import Ask, AskKind
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, UnreadableRow
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Run, Task, number_of_run, run_id, task_of_run
from adjourn.core.trail.events import GENESIS, Event, Happened, Sealed, link_after
from adjourn.stores.shapes import (
    event_of,
    intact_event,
    name_or_none,
    prefix_range,
    sealed_of,
    short_digest,
)

if TYPE_CHECKING:  # starting is a hot path: only who delivers needs it
    from adjourn.core.outbox import Outbox

from adjourn.ports.store import View

BITS = 20
LAST = (1 << BITS) - 1
NEWEST = 1 << 62
# By its number and theirs
OF_A_TASK = ("runs", "calls", "call_bodies", "asks", "ask_bodies", "turns", "messages")
T = TypeVar("T")


class NoLeases:
    """Writers come one after the other, and the dead stay dead.

    Nothing has to be held, fenced or taken away.
    """

    def abandoned(self) -> list[Run]:
        return []

    def hold(self, run: Run) -> None:
        """Let the run's supervisor have its task."""

    def fence(self, run: Run) -> None:
        """Find that the run's supervisor has its task."""

    def take_over(self, run: Run, *, only_if_over: bool) -> None:
        """Take the task from a supervisor that is dead."""

    def read_ahead(self, task_id: str) -> None:
        """Read nothing ahead: all of it is near."""

    def hold_asks(self, ask_ids: Sequence[str]) -> None:
        """Have all of them: nobody else writes meanwhile."""


def oldest_fitting(view: View, pool: str, fits: Callable[[Task], bool]) -> Task | None:
    """Return the oldest task of a pool that can be started and that fits.

    Most often it is the first.
    """
    limit = 1
    while len(page := view.queued(pool=pool, limit=limit)) == limit and not any(map(fits, page)):
        limit *= 16
    return next(filter(fits, page), None)


Values = tuple[Any, ...]  # what a database hands out; each reader gives it a type at once


class StoreRows:
    """Reads and writes rows by the names of statements; each database says how one is run.

    A task has a number. What belongs to it has that number times 2^20 plus a number of its own.

    Lists over several tasks leave out what cannot be read, so that one bad row keeps nobody from
    all others. What is read of one task raises UnreadableRow: nothing is done by half of it.
    """

    unreadable: dict[str, UnreadableRow]  # what was left out, of all views of the store

    def _all(self, query: str, *values: object) -> list[Values]:
        """Run a statement and return its rows."""
        raise NotImplementedError

    def _execute(self, query: str, *values: object) -> None:
        """Run a statement whose rows nobody needs, at the latest before the next `_all`."""
        raise NotImplementedError

    def _no(self, task_id: str) -> int:
        """Return a task's number, or raise NotFound."""
        raise NotImplementedError

    def _one(self, query: str, *values: object) -> Values | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

    def _count(self, query: str, *values: object) -> int:
        ((count,),) = self._all(query, *values)
        return int(count)

    def _key(self, task_id: str, number: int) -> int:
        return (self._no(task_id) << BITS) + number

    def _run_key(self, name: str) -> int:
        return self._key(task_of_run(name), number_of_run(name))

    def _span(self, task_id: str) -> tuple[int, int]:
        first = self._no(task_id) << BITS
        return first, first + LAST

    def _readable(self, read: Callable[[Values], T], rows: Iterable[Values]) -> list[T]:
        """Return what rows hold, without what cannot be read."""
        found: list[T] = []
        for row in rows:
            try:
                found.append(read(row))
            except UnreadableRow as error:
                error.note_in(self.unreadable)
        return found

    def _page(
        self, read: Callable[[Values], T], limit: int, fetch: Callable[[int], list[Values]]
    ) -> list[T]:
        """Return so many that can be read; others are left out and do not count."""
        wanted = fetched = most(limit)
        while True:
            rows = fetch(fetched)
            found = self._readable(read, rows)
            if len(found) >= wanted or len(rows) < fetched:
                return found[:wanted]
            fetched += 2 * (wanted - len(found))

    # --- tasks ------------------------------------------------------------------------------------

    def _task(self, row: Values) -> Task:
        """Put a task together."""
        raise NotImplementedError

    def task_in_slot(self, slot: str) -> Task | None:
        row = self._one("task_in_slot", bytes.fromhex(slot))
        return self._task(row) if row else None

    def tasks_like(self, prefix: str) -> list[str]:
        return [row[0] for row in self._all("tasks_like", *prefix_range(prefix))]

    def tasks(
        self, *, states: Sequence[TaskState] = (), limit: int, before: str | None = None
    ) -> list[Task]:
        place = self._no(before) if before else NEWEST

        def fetch(count: int) -> list[Values]:
            if not states:
                return self._all("tasks_before", place, count)
            found = [
                row
                for state in states
                for row in self._all("tasks_in_state_before", state.value, place, count)
            ]
            return sorted(found, key=lambda row: -row[0])[:count]

        return self._page(self._task, limit, fetch)

    def running(self) -> list[Task]:
        raise NotImplementedError

    def unwanted(self) -> set[str]:
        return {row[0] for row in self._all("unwanted_tasks")}

    def queued(self, *, pool: str, limit: int) -> list[Task]:
        return self._page(self._task, limit, lambda count: self._all("queued", pool, count))

    # --- runs and calls ---------------------------------------------------------------------------

    def _run_of(self, task_id: str, row: Values) -> Run:
        """Return the run that a row holds; its number is the row's first column."""
        raise NotImplementedError

    def _call_of(self, task_id: str, row: Values) -> Call:
        """Return the call that a row holds; its number is the row's first column."""
        raise NotImplementedError

    def run(self, task_id: str, number: int) -> Run:
        row = self._one("run", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no run {run_id(task_id, number)}", way_out=f"adjourn runs {task_id}")
        return self._run_of(task_id, row)

    def current_runs(self) -> list[Run]:
        return self._readable(
            lambda row: self.run(*row), [(task.id, task.runs) for task in self.running()]
        )

    def runs(self, task_id: str) -> list[Run]:
        return [self._run_of(task_id, row) for row in self._all("runs", *self._span(task_id))]

    def run_of_checkpoint(self, prefix: str) -> Run | None:
        found = self._all("runs_like", *prefix_range(prefix))
        if len(found) != 1:
            return None
        no = found[0][0]
        ((task_id,),) = self._all("task_id", no >> BITS)
        return self.run(task_id, no & LAST)

    def call(self, task_id: str, number: int) -> Call:
        row = self._one("call", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no call {task_id}.tc_{number}", way_out=f"adjourn show {task_id}")
        return self._call_of(task_id, row)

    def calls(self, task_id: str) -> list[Call]:
        return [self._call_of(task_id, row) for row in self._all("calls", *self._span(task_id))]

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        rows = self._all("calls_in", *self._span(task_id), state.value)
        return [self._call_of(task_id, row) for row in rows]

    def call_labelled(self, task_id: str, label: str) -> Call | None:
        row = self._one("call_labelled", label, *self._span(task_id))
        return self.call(task_id, row[0] & LAST) if row else None

    # --- asks -------------------------------------------------------------------------------------

    def _ask(self, row: Values) -> Ask:
        """Put an ask together."""
        raise NotImplementedError

    def _asks(self, query: str, *values: object) -> list[Ask]:
        return [self._ask(row) for row in self._all(query, *values)]

    def ask(self, ask_id: str) -> Ask:
        return self._ask(self._named("ask_by_id", ask_id))

    def _named(self, query: str, ask_id: str) -> Values:
        row = self._one(query, name_or_none(ask_id))
        if row is None:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn inbox")
        return row

    def asks_like(self, prefix: str) -> list[str]:
        return [row[0] for row in self._all("asks_like", *prefix_range(prefix))]

    def asks(self, task_id: str) -> list[Ask]:
        return self._asks("asks", *self._span(task_id))

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        return self._asks("asks_of_run", *self._span(task_id), run)

    def open_asks_of(self, task_id: str) -> list[Ask]:
        return self._asks("open_asks_of", *self._span(task_id))

    def ask_in_slot(self, slot: str) -> Ask | None:
        row = self._one("ask_in_slot", bytes.fromhex(slot))
        return self._ask(row) if row else None

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        row = self._one("ask_by_no", self._key(task_id, number))
        return self._ask(row) if row else None

    def open_asks(
        self,
        *,
        limit: int,
        after: str | None = None,
        before: str | None = None,
        awake_at: int | None = None,
    ) -> list[Ask]:
        place = self._named("ask_place", after) if after else (-1, -1)
        if before is None:

            def fetch(count: int) -> list[Values]:
                if awake_at is None:
                    return self._all("open_asks", *place, count)
                return self._all("awake_asks", *place, count, awake_at)

            return self._page(self._ask, limit, fetch)

        end = self._named("ask_place", before)
        moment = NEWEST if awake_at is None else awake_at  # nothing is snoozed for so long

        def fetch_back(count: int) -> list[Values]:
            return self._all("asks_before", *place, count, moment, *end)

        return self._page(self._ask, limit, fetch_back)[::-1]

    def open_ask_ids(self, *, awake_at: int | None = None) -> list[tuple[str, AskKind]]:
        moment = NEWEST if awake_at is None else awake_at
        return [(name, AskKind(kind)) for name, kind in self._all("open_ask_ids", moment)]

    def snoozed_asks(self, *, now: int, limit: int) -> list[Ask]:
        return self._page(self._ask, limit, lambda count: self._all("snoozed_asks", now, count))

    def count_snoozed_asks(self, *, now: int) -> int:
        return self._count("count_snoozed_asks", now)

    def expired_asks(self, *, now: int) -> list[Ask]:
        return self._readable(self._ask, self._all("expired_asks", now))

    def asks_to_remind(self, *, now: int) -> list[Ask]:
        return self._readable(self._ask, self._all("asks_to_remind", now))

    def count_open_asks(self) -> int:
        return self._count("count_open_asks")

    # --- turns, documents and messages ------------------------------------------------------------

    def count_turns(self, run_id: str, key: str) -> int:
        return self._count("count_turns", self._run_key(run_id), short_digest(key))

    def close_turn(self, run_id: str, thing: str) -> None:
        self._execute("close_turn", self._run_key(run_id), thing)

    def document(self, task_id: str, name: str) -> bytes | None:
        row = self._one("document", self._no(task_id), name)
        return bytes(row[0]) if row else None

    def keep_document(self, task_id: str, name: str, body: bytes | None) -> None:
        no = self._no(task_id)
        self._execute("drop_document", no, name)
        if body is not None:
            self._execute("insert_document", no, name, body)

    def shared_document(self, name: str) -> bytes | None:
        row = self._one("shared_document", name)
        return bytes(row[0]) if row else None

    def keep_shared_document(self, name: str, body: bytes) -> None:
        self._execute("keep_shared_document", name, body)

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        first, last = self._span(task_id)
        return [body for (body,) in self._all("messages", first + after, last)]

    def count_messages(self, task_id: str) -> int:
        row = self._one("last_message", *self._span(task_id))
        return int(row[0]) & LAST if row else 0

    def add_message(self, task_id: str, number: int, body: bytes) -> None:
        self._execute("insert_message", self._key(task_id, number), body)

    # --- the trail --------------------------------------------------------------------------------

    # Of tasks whose chains grew: their numbers, and their newest links
    _heads: dict[str, tuple[int, bytes]]

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        """Return a task's number, and the link of its newest event that was there before."""
        raise NotImplementedError

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        """Remember an event of a task until it is written."""
        raise NotImplementedError

    def _write_events(self) -> None:
        """Write what was remembered, so that it can be read."""
        raise NotImplementedError

    def append(self, event: Event) -> None:
        no, head = self._head(event.task_id)
        link = link_after(head, event)
        self._heads[event.task_id] = (no, link)
        self._keep_event(no, event, link)

    def _head(self, task_id: str) -> tuple[int, bytes]:
        return self._heads.get(task_id) or self._stored_head(task_id)

    def chain_head(self, task_id: str) -> bytes:
        return self._head(task_id)[1]

    def trail_head(self) -> tuple[int, bytes]:
        self._write_events()
        row = self._one("trail_head")
        return (int(row[0]), bytes(row[1])) if row else (0, GENESIS)

    def requester(self, task_id: str) -> str:
        row = self._one("first_event", self._no(task_id))
        if row is None:  # it was made in this very transaction
            self._write_events()
            row = self._one("first_event", self._no(task_id))
        return event_of(task_id, row[0]).by if row and row[0] is not None else ""

    def beginning(self, task_id: str) -> Event | None:
        no = self._no(task_id)
        row = self._one("first_event", no)
        if row is None:  # it was made in this very transaction
            return next(reversed(self._untold(task_id, no)), None)
        return intact_event(task_id, row[0]) if row[0] is not None else None

    def newest_events(self, task_id: str, *, limit: int) -> list[Event]:
        no = self._no(task_id)
        untold = self._untold(task_id, no)
        if 0 <= limit <= len(untold):
            return untold[:limit]
        rest = limit - len(untold) if limit >= 0 else limit
        kept = [intact_event(task_id, row[1]) for row in self._all("last_events", no, most(rest))]
        return untold + [event for event in kept if event]

    def _untold(self, task_id: str, no: int) -> list[Event]:
        """Return the events of a task that this transaction has not written yet, newest first."""
        raise NotImplementedError

    def events(self, task_id: str) -> list[Event]:
        self._write_events()
        rows = self._all("events", self._no(task_id))
        return self._readable(lambda row: event_of(task_id, row[0]), rows)

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        self._write_events()
        no = self._no(task_id)
        return self._page(
            lambda row: Happened(place=row[0], event=event_of(task_id, row[1]), seal=row[2]),
            limit,
            lambda count: self._all("last_events", no, count),
        )

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        self._write_events()
        return [sealed_of(*row) for row in self._all("trail", after, most(limit))]

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        self._write_events()
        return self._page(
            lambda row: Happened(place=row[0], event=event_of(row[1], row[2]), seal=row[3]),
            limit,
            lambda count: self._all("happened", after, count),
        )

    def place_before(self, moment: int) -> int:
        self._write_events()
        place = NEWEST
        while page := self._all("events_before", place):
            for no, body in page:
                event = intact_event("", body)
                if event and event.at < moment:
                    return int(no)
            place = page[-1][0]
        return 0

    def forget_task(self, task_id: str) -> None:
        no, span = self._no(task_id), self._span(task_id)
        self._forget_events(task_id, no)
        for table in OF_A_TASK:
            self._execute(f"forget_{table}", *span)
        for query in ("forget_documents", "forget_spec", "forget_task"):
            self._execute(query, no)
        self._heads.pop(task_id, None)

    def _forget_events(self, task_id: str, no: int) -> None:
        self._write_events()
        link = GENESIS
        for event_no, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            self._execute("forget_event", event_no, link)

    def outbox(self, notifier: str) -> "Outbox | None":
        # Most commands start without it (bench start)
        from adjourn.core.outbox import Outbox

        row = self._one("outbox", notifier)
        try:
            return msgspec.msgpack.decode(row[0], type=Outbox) if row else None
        except (msgspec.MsgspecError, ValueError):
            UnreadableRow.of("outbox", notifier).note_in(self.unreadable)
            return None

    def save_outbox(self, notifier: str, outbox: "Outbox") -> None:
        self._execute("save_outbox", notifier, msgspec.msgpack.encode(outbox))


def statements_in(text: str) -> dict[str, str]:
    """Return the statements of an SQL file by the names that it gives them.

    `-- part: x` names what stands in statements as {x}, such as the columns that make a task.
    """
    parts, statements = text.partition("-- name: ")[0], text.split("-- name: ")[1:]
    found = [each.partition("\n") for each in parts.split("-- part: ")[1:]]
    for name, _, part in found:
        statements = [each.replace(f"{{{name}}}", part.strip()) for each in statements]
    return {name: each for name, _, each in (each.partition("\n") for each in statements)}


def most(limit: int) -> int:
    """Return a limit as every database knows it; below zero means no limit."""
    return limit if limit >= 0 else NEWEST

"""Asks, turns, documents and the trail in PostgreSQL, and the identity map of a transaction.

Only the holder of the lock of a task's family can change it. So what was read of
it once is true until the end of the transaction, and is not read again: `lock_families` and the
`whole_*` statements read a task, its open asks and calls and its last run in one round trip.
Without this a decision would read the same rows again in each of its steps.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from adjourn.core.ask import Ask
from adjourn.core.errors import Conflict, UnreadableRow
from adjourn.core.task import Task
from adjourn.core.trail.events import GENESIS, Event, link_after
from adjourn.ports.store import Turn
from adjourn.stores.postgres.batch import read_about
from adjourn.stores.postgres.batched_rows import (
    PREFETCHED,
    IdentityMap,
    QueueEntry,
    expect,
    outdated_if_missing,
    valid_names,
)
from adjourn.stores.postgres.connection import Values
from adjourn.stores.postgres.task_rows import OF_TASK, EngineRows, call_of, run_of, task_of
from adjourn.stores.rows import BITS, LAST
from adjourn.stores.shapes import (
    APPROVALS,
    HEXADECIMAL,
    AskRow,
    Shape,
    ask_of,
    event_of,
    intact_event,
    name_or_none,
    row_of,
    short_digest,
)

_WRITTEN = (
    *("call", "expires_at", "settled_at", "settled_by", "level", "snoozed_until"),
    *("given", "remind_at"),
)
_COLUMNS = ("id", "state", "kind", "run", "created_at", "slot", *_WRITTEN, "approvals")
_NEVER_CHANGES = "policy:"  # begins the names of shared documents that are known by their digest
_ASKED = (
    *("prompt", "choices", "key", "manifest", "gate", "terms", "replaces", "label", "review"),
    "escalate_to",
)
# How many columns of a row of `to_start` belong to a task, its queue entry, its head, a run, a call
# and an ask; and of one of `whole_tasks` to a task, its entry, its head and more, and a run.
_TO_START = (OF_TASK, len(QueueEntry._fields), 1, 7, 9, len(_COLUMNS) + 4)
_WHOLE = (OF_TASK, len(QueueEntry._fields), 3, 7)
_ASKS = Shape(
    AskRow,
    called="{id}",
    columns=_COLUMNS,
    apart=_ASKED,
    known=("task_id", "number"),
    as_column={"slot": HEXADECIMAL, "given": APPROVALS},
)


class AskRows(EngineRows):
    """What is kept of asks, of what a run asked for, and of documents."""

    # --- asks -------------------------------------------------------------------------------------

    def ask(self, ask_id: str) -> Ask:
        if ask_id in self._known.asks:
            return self._known.asks[ask_id]
        if self._changes and ask_id not in self._held_asks:
            self.hold_asks([ask_id])
        return self._remember_ask(super().ask(ask_id))

    def hold_asks(self, ask_ids: Sequence[str]) -> None:
        names = valid_names(ask_ids)
        self._lock_and_read(names, [])
        self._held_asks.update(names)

    def _find_number(self, task_id: str) -> None:
        """Remember a task's number; a transaction that changes locks the task's family first."""
        if not self._changes:
            super()._find_number(task_id)
            return
        if self._prefetched and self._prefetched.is_judged and self._adopt_prefetched(task_id):
            no = self._known.numbers[task_id]
            self.is_guarded = True
            self._execute("guard", no, self._known.tasks[no].version, self._known.heads[no])
        else:
            self._lock_and_read([], valid_names([task_id]))

    def read_ahead(self, task_id: str) -> None:
        if self._prefetched and self._adopt_prefetched(task_id):
            self._known.is_judged = True
        else:
            self.prefetch(task_id)

    def _adopt_prefetched(self, task_id: str) -> bool:
        """Take over what was read a moment ago.

        A change that relies on it has a guard that checks that it is still true.
        """
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is None or task_id not in prefetched.numbers or self._known.numbers:
            return False
        self._known = prefetched
        return True

    def prefetch(self, task_id: str) -> None:
        """Read in one go what the start of a task is judged by."""
        name = name_or_none(task_id)
        tasks, first, newest = self._each(
            ("to_start", (name,)), ("first_told", (name,)), ("newest_told", (name, PREFETCHED))
        )
        for row in tasks:
            columns = iter(row)
            of_task, entry, (head,), run, call, ask = (
                tuple(islice(columns, count)) for count in _TO_START
            )
            task = self._remember_task(of_task, QueueEntry(*entry), head)
            self._remember_last_run(task, run)
            if call[0] is not None:
                self._known.calls[call[0]] = call_of(task.id, call)
            if ask[0] is not None:
                self._remember_ask(self._ask(ask))
            no = self._known.numbers[task.id]
            if first and first[0][0] is not None:
                self._known.beginnings[no] = bytes(first[0][0])
            self._known.told[no] = [bytes(body) for (body,) in newest]

    def _lock_and_read(self, asks: Sequence[str], tasks: Sequence[str]) -> None:
        """Lock the families of tasks, and read in one go what a decision will need of them."""
        queries = ("lock_families", "whole_tasks", "whole_asks", "whole_calls")
        _, whole, open_asks, open_calls = self._send(
            [read_about(query, asks=asks, tasks=tasks) for query in queries]
        )
        known = self._known
        for row in whole:
            columns = iter(row)
            of_task, entry, (head, first, has_turns), run = (
                tuple(islice(columns, count)) for count in _WHOLE
            )
            self._remember(of_task[1], of_task[0])
            try:
                task = self._remember_task(of_task, QueueEntry(*entry), head)
                self._remember_last_run(task, run)
            except UnreadableRow:
                continue  # a caller that needs it gets the error; the others go on
            no = known.numbers[task.id]
            known.asks_of[no], known.calls_of[no] = {}, {}
            known.last_runs[no] = task.runs
            if not has_turns:
                known.turns_of[(no << BITS) + task.runs] = []
            if first is not None:  # else the task was made in this very transaction
                with suppress(UnreadableRow):
                    known.requesters[no] = event_of(task.id, first).by

        # A task of which something cannot be read is not known as a whole
        for row in open_asks:
            try:
                self._remember_ask(self._ask(row))
            except UnreadableRow:
                known.asks_of.pop(row[0] >> BITS, None)
        for row in open_calls:
            no = row[0] >> BITS
            try:
                call = known.calls[row[0]] = call_of(known.names[no], row)
            except UnreadableRow:
                known.calls_of.pop(no, None)
                continue
            if no in known.calls_of:
                known.calls_of[no][call.number] = call

    def _remember_task(self, row: Values, entry: QueueEntry, head: bytes | None) -> Task:
        known, no, task = self._known, row[0], task_of(row)
        self._remember(task.id, no)
        known.tasks[no], known.entries[no], known.heads[no] = task, entry, head or GENESIS
        return task

    def _remember_last_run(self, task: Task, run: Values) -> None:
        if run[0] is not None:
            self._known.runs[run[0]] = run_of(task.id, run)

    def _remember_ask(self, ask: Ask) -> Ask:
        """Remember an ask as it stands."""
        no = self._known.numbers.get(ask.task_id)
        if no is not None:
            self._known.asks[ask.id] = self._known.numbered[(no << BITS) + ask.number] = ask
            if no in self._known.asks_of:
                self._known.asks_of[no][ask.number] = ask
        return ask

    def _whole(self, task_id: str) -> list[Ask] | None:
        asks = self._known.asks_of.get(self._no(task_id))
        return None if asks is None else [asks[number] for number in sorted(asks)]

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        if (asks := self._whole(task_id)) is not None and run >= self._known.last_runs[
            self._no(task_id)
        ]:
            return [ask for ask in asks if ask.run == run]
        return super().asks_of_run(task_id, run)

    def open_asks_of(self, task_id: str) -> list[Ask]:
        if (asks := self._whole(task_id)) is not None:
            return [ask for ask in asks if ask.is_open]
        return super().open_asks_of(task_id)

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        key = self._key(task_id, number)
        if key in self._known.numbered:
            return self._known.numbered[key]
        ask = super().ask_numbered(task_id, number)
        return self._remember_ask(ask) if ask else None

    def expired_asks(self, *, now: int) -> list[Ask]:
        if self._changes:
            self._execute("lock_expired_asks", now)
        found = super().expired_asks(now=now)
        if self._changes and found:
            self.hold_asks([ask.id for ask in found])
        return found

    def asks_to_remind(self, *, now: int) -> list[Ask]:
        if self._changes:
            self._execute("lock_asks_to_remind", now)
        found = super().asks_to_remind(now=now)
        if self._changes and found:
            self.hold_asks([ask.id for ask in found])
        return found

    def add_ask(self, ask: Ask) -> None:
        no = self._key(ask.task_id, ask.number)
        row = row_of(ask)
        self._execute("insert_ask", no, *_ASKS.columns(row), _ASKS.body(row), _ASKS.apart(row))
        self._remember_ask(ask)

    def save_ask(self, old: Ask, new: Ask) -> None:
        no = self._key(old.task_id, old.number)
        with outdated_if_missing(old.id):
            current = self.ask(old.id)
        expect(current.state is old.state, old.id)
        self._remember_ask(new)
        row = row_of(new)
        written = _ASKS.columns(row, of=("state", *_WRITTEN))
        self._write("write_ask", no >> BITS, no, *written, _ASKS.body(row))
        if (apart := _ASKS.apart(row)) != _ASKS.apart(row_of(old)):
            self._write("update_ask_body", no >> BITS, no, apart)

    def _ask(self, row: Values) -> Ask:
        no, *columns, body, apart, task_id = row
        return _ASKS.made(ask_of, columns, body, apart, task_id=task_id, number=no & LAST)

    # --- turns ------------------------------------------------------------------------------------

    def turns_left_open(self, run_id: str) -> list[Turn]:
        key = self._run_key(run_id)
        if key in self._known.turns_of:
            return self._known.turns_of[key]
        return [_turn(run_id, kind, thing) for kind, thing in self._all("turns_left_open", key)]

    def add_turn(self, turn: Turn) -> None:
        kind = turn.key.partition(":")[0] + ":"
        key = (short_digest(turn.key), kind.encode("utf-8", "surrogatepass"))
        self._known.turns_of.pop(self._run_key(turn.run_id), None)
        self._execute("insert_turn", self._run_key(turn.run_id), *key, turn.thing, turn.left_open)

    def close_turn(self, run_id: str, thing: str) -> None:
        self._known.turns_of.pop(self._run_key(run_id), None)
        super().close_turn(run_id, thing)

    # --- documents --------------------------------------------------------------------------------

    def shared_document(self, name: str) -> bytes | None:
        if self._changes and not name.startswith(_NEVER_CHANGES):
            self._execute("lock_shared_document", name)
        return super().shared_document(name)


def _turn(run: str, kind: bytes, thing: str) -> Turn:
    return Turn(run_id=run, key=kind.decode("utf-8", "surrogatepass"), thing=thing, left_open=True)


class PostgresRows(AskRows):
    """What happened.

    It is put into the one chain of the store at the end of a transaction, or when somebody reads it
    before.
    """

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        self._unsealed.append((no, event, link))
        self.opens_gate = self.opens_gate or event.kind == "call_executing"

    def _untold(self, task_id: str, no: int) -> list[Event]:
        return [
            event
            for owner, event, _ in reversed(self._unsealed)
            if owner == no and event.task_id == task_id
        ]

    def beginning(self, task_id: str) -> Event | None:
        body = self._known.beginnings.get(self._no(task_id))
        return intact_event(task_id, body) if body is not None else super().beginning(task_id)

    def newest_events(self, task_id: str, *, limit: int) -> list[Event]:
        no = self._no(task_id)
        known = self._known.told.get(no)
        if known is None or (len(known) >= PREFETCHED and not 0 <= limit <= PREFETCHED):
            return super().newest_events(task_id, limit=limit)
        kept = [event for body in known if (event := intact_event(task_id, body))]
        found = self._untold(task_id, no) + kept
        return found[:limit] if limit >= 0 else found

    def _write_events(self) -> None:
        self._seal()

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        no = self._no(task_id)
        if no in self._known.heads:
            return no, self._known.heads[no]
        ((head,),) = self._all("head", no)
        return no, head or GENESIS

    def requester(self, task_id: str) -> str:
        no = self._no(task_id)
        return (
            self._known.requesters[no]
            if no in self._known.requesters
            else super().requester(task_id)
        )

    def clear_damaged(self, task: Task) -> None:
        raise Conflict(
            f"task {task.id} cannot be read, and no login of a shared database may rewrite it",
            way_out="restore what is damaged from a backup, as the owner of the database",
        )

    def forget_task(self, task_id: str) -> None:
        no = self._no(task_id)
        self._write_events()
        link = GENESIS
        places: list[int] = []
        links: list[bytes] = []
        for place, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            places.append(place)
            links.append(link)
        self._execute("forget_task", no, places, links)
        self._heads.pop(task_id, None)
        self._known = IdentityMap()

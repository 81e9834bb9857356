"""What a transaction on PostgreSQL has read, and what it still has to write."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import msgspec

from adjourn.core.ask import Ask
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated, UnreadableRow
from adjourn.core.task import Run, Task
from adjourn.core.trail.events import Event
from adjourn.ports.store import Turn
from adjourn.stores.postgres.batch import SQL, WriteBatch
from adjourn.stores.postgres.connection import PostgresConnection, Statement, Values
from adjourn.stores.rows import StoreRows
from adjourn.stores.shapes import event_body, name_or_none

PREFETCHED = 16  # events that are read with a task that is about to start
_MOST_NAMES = 100
_EVIDENCE = {"insert_document": "trace_of_document", "insert_message": "trace_of_message"}
_CHANGED = "{} was changed by someone else at the same moment"
_LONGEST_NEWS = 8000  # bytes that NOTIFY takes


class QueueEntry(NamedTuple):
    """Where the engine keeps a task: the queue of a pool, and the engine's ids if it is queued."""

    pool: str
    task: str | None = None
    run: str | None = None


class CommitEvidence(NamedTuple):
    """A row that only this transaction writes: if it is there, the transaction was committed."""

    query: str
    values: Values


class IdentityMap:
    """What a transaction has read or written of tasks that it has locked: true until its end."""

    def __init__(self) -> None:
        self.is_judged = False  # whether the caller relied on it, so that a guard is needed
        self.numbers: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.tasks: dict[int, Task] = {}
        self.runs: dict[int, Run] = {}
        self.calls: dict[int, Call] = {}
        self.asks: dict[str, Ask] = {}
        self.numbered: dict[int, Ask] = {}
        self.heads: dict[int, bytes] = {}
        self.requesters: dict[int, str] = {}
        self.beginnings: dict[int, bytes] = {}  # first events
        # The newest events that are written, as many as are prefetched
        self.told: dict[int, list[bytes]] = {}
        self.entries: dict[int, QueueEntry] = {}
        # Of tasks that were read as a whole: asks that are open or of the last run, open calls,
        # and what that run asked for and did not get.
        self.last_runs: dict[int, int] = {}
        self.asks_of: dict[int, dict[int, Ask]] = {}
        self.calls_of: dict[int, dict[int, Call]] = {}
        self.turns_of: dict[int, list[Turn]] = {}


class BatchedRows(StoreRows):
    """One view or one transaction, which reads at once and keeps its writes for the next read."""

    def __init__(
        self,
        db: PostgresConnection,
        *,
        changes: bool,
        lease: float,
        unreadable: dict[str, UnreadableRow],
        prefetched: IdentityMap | None = None,
    ) -> None:
        self._db = db
        self.unreadable = unreadable
        self._changes = changes
        self._lease = lease
        self._prefetched = prefetched
        # Whether a guard rolls it back if what was prefetched is no longer true
        self.is_guarded = False
        self.opens_gate = False  # whether a call starts once this is committed
        self.evidence: CommitEvidence | None = None  # of this transaction, if it leaves any
        self._held_asks: set[str] = set()
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._unsealed: list[tuple[int, Event, bytes]] = []
        self._known: IdentityMap = IdentityMap()
        self._batch = WriteBatch()
        # Tasks that this transaction queued, and the pools of those that are still queued
        self._entered: dict[int, QueueEntry] = {}
        self._queued: dict[str, str] = {}
        self.queues: set[str] = set()  # that were made, or found

    @property
    def known(self) -> IdentityMap:
        """All that was read or written so far."""
        return self._known

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._each((query, values))[0]

    def _each(self, *queries: tuple[str, Values]) -> list[list[Values]]:
        """Run several queries in one go, after what is still to be written."""
        return self._send([(SQL[query], values) for query, values in queries])

    def _send(self, statements: list[Statement]) -> list[list[Values]]:
        unwritten = self._take_batch()
        return self._db.batch([*unwritten, *statements])[len(unwritten) :]

    def flush(self) -> None:
        self._send([])

    def _take_batch(self) -> list[Statement]:
        unwritten, self._batch = self._batch, WriteBatch()
        return unwritten.statements()

    def _write(self, query: str, task: int, *row: object, pool: str = "") -> None:
        """Write a row before the next query."""
        self._batch.add(query, task, row, pool=pool)

    def _execute(self, query: str, *values: object) -> None:
        """Run a statement before the next query."""
        self._batch.add_alone(query, values)
        if query in _EVIDENCE:
            self.evidence = CommitEvidence(_EVIDENCE[query], values[:-1])

    def _no(self, task_id: str) -> int:
        if task_id not in self._known.numbers:
            self._find_number(task_id)
        if task_id not in self._known.numbers:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return self._known.numbers[task_id]

    def _find_number(self, task_id: str) -> None:
        """Remember a task's number."""
        if row := self._one("task_no", name_or_none(task_id)):
            self._remember(task_id, int(row[0]))

    def _remember(self, task_id: str, no: int) -> None:
        self._known.numbers[task_id] = no
        self._known.names[no] = task_id

    def _seal(self, news: str = "") -> None:
        """Put the events so far into the chain of the store.

        From here on every other transaction that appends an event waits for this one.
        """
        unsealed, self._unsealed = self._unsealed, []
        self._known.told.clear()
        if unsealed:
            tasks, events, links = map(list, zip(*unsealed, strict=True))
            bodies = [event_body(event) for event in events]
            self.evidence = CommitEvidence("trace_of_event", (tasks[-1], bodies[-1]))
            self._execute("seal_events", tasks, bodies, links, news)

    def finish(self) -> list[Statement]:
        """Return the last statements before the commit."""
        for no, head in self._heads.values():
            if not self._batch.complete("write_task", no, head):
                self._write("update_head", no, no, head)
        if self._unsealed:
            self._seal(self._news())
        else:
            self._execute("notify", self._news())
        return self._take_batch()

    def _news(self) -> str:
        """Return which tasks were queued in which pools, for NOTIFY; of very many only some."""
        queues: dict[str, list[str]] = {}
        for task_id, pool in islice(self._queued.items(), _MOST_NAMES):
            queues.setdefault(pool, []).append(task_id)
        news = msgspec.json.encode(queues).decode() if queues else ""
        return news if len(news.encode()) < _LONGEST_NEWS else ""


@contextmanager
def outdated_if_missing(name: str) -> Generator[None, None, None]:
    """Raise Outdated where something is to be replaced that is not there."""
    try:
        yield
    except NotFound:
        raise Outdated(_CHANGED.format(name)) from None


def expect(is_unchanged: bool, name: str) -> None:  # noqa: FBT001 -- a guard reads best so
    """Raise Outdated if something is not what it was taken for."""
    if not is_unchanged:
        raise Outdated(_CHANGED.format(name))


def valid_names(texts: Sequence[str]) -> list[str]:
    """Return those texts that the database can compare with names."""
    return [found for text in texts if (found := name_or_none(text)) is not None]

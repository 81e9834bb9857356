"""The small steps that all rows are read and written with."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from adjourn.core.ask import Ask
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated
from adjourn.core.events import Event
from adjourn.core.task import Task, number_of_run, task_of_run
from adjourn.ports.store import Turn
from adjourn.stores.bodies import event_body, name_or_none
from adjourn.stores.postgres.database import Database, Values

BITS = 20
LAST = (1 << BITS) - 1
NEWEST = 1 << 62


def _named(text: str) -> dict[str, bytes]:
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name: statement.encode() for name, _, statement in parts}


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    SQL = _named(_file.read())


# A task is queued before the engine hears of it: its row there and its state are held together by a CHECK.
_IN_ORDER = ("write_task", "write_call", "update_call_body", "write_ask", "update_ask_body", "update_head", "put_back")


class Known:
    """What a transaction has read or written of tasks that nobody else can change: it is true until the end."""

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.calls: dict[int, Call] = {}
        self.asks: dict[str, Ask] = {}
        self.heads: dict[int, bytes] = {}
        self.requesters: dict[int, str] = {}
        # Of tasks that were looked at as a whole: all asks, all calls that are not over, and what their last runs did not get.
        self.asks_of: dict[int, dict[int, Ask]] = {}
        self.calls_of: dict[int, dict[int, Call]] = {}
        self.turns_of: dict[int, list[Turn]] = {}


class Steps:
    """One view or one transaction. Whoever changes something of a task holds the row of its family first."""

    def __init__(self, db: Database, *, changes: bool) -> None:
        self._db = db
        self._changes = changes
        self._numbers: dict[str, int] = {}  # in a transaction: of the tasks that nobody else can change
        self._names: dict[int, str] = {}
        self._held_asks: set[str] = set()
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._unsealed: list[tuple[int, Event, bytes]] = []
        self._known = Known()
        self._unwritten: dict[str, dict[int, Values]] = {}

    def _all(self, query: str, *values: object) -> list[Values]:
        self._write()
        return self._db.all(SQL[query], *values)

    def _later(self, query: str, key: int, *values: object) -> None:
        """Write something before anything else is said to the database; of several writes of one row the last counts."""
        rows = self._unwritten.setdefault(query, {})
        rows.pop(key, None)
        rows[key] = (key, *values)

    def _write(self) -> None:
        if not self._unwritten:
            return
        unwritten, self._unwritten = self._unwritten, {}
        for query in (name for name in _IN_ORDER if name in unwritten):
            rows = list(unwritten[query].values())
            if self._db.many(SQL[query], rows) != len(rows):
                raise Outdated("what was to be changed is not there any more")

    def _one(self, query: str, *values: object) -> Values | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

    def _run(self, query: str, *values: object) -> None:
        self._all(query, *values)

    def _swap(self, query: str, *values: object, name: str) -> None:
        if not self._all(query, *values):
            raise Outdated(f"{name} was changed by someone else at the same moment")

    def _no(self, task_id: str) -> int:
        if task_id not in self._numbers:
            row = self._one("lock_task" if self._changes else "task_no", word(task_id))
            if row is None:
                raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
            self._remember(task_id, int(row[0]))
        return self._numbers[task_id]

    def _remember(self, task_id: str, no: int) -> None:
        self._numbers[task_id] = no
        self._names[no] = task_id

    def _key(self, task_id: str, number: int) -> int:
        return (self._no(task_id) << BITS) + number

    def _run_key(self, name: str) -> int:
        return self._key(task_of_run(name), number_of_run(name))

    def _span(self, task_id: str) -> tuple[int, int]:
        first = self._no(task_id) << BITS
        return first, first + LAST

    def _task_id(self, no: int) -> str:
        if no in self._names:
            return self._names[no]
        ((task_id,),) = self._all("task_id", no)
        return str(task_id)

    def _seal(self) -> None:
        """Put what was told so far into the chain of the store. From here on everyone else who tells something waits."""
        if self._unsealed:
            tasks, events, links = zip(*self._unsealed, strict=True)
            self._unsealed = []
            self._run("seal_events", list(tasks), [event_body(event) for event in events], list(links))

    def finish(self) -> tuple[str, int | None, bytes | None]:
        """Write what was kept back until the end, and return the transaction's number and the newest place and seal."""
        for no, head in self._heads.values():
            self._later("update_head", no, head)
        self._seal()
        ((_, number, place, seal),) = self._all("notify")
        return str(number), place, seal


@contextmanager
def outdated_if_missing(name: str) -> Generator[None, None, None]:
    """Raise Outdated where something is to be replaced that is not there."""
    try:
        yield
    except NotFound:
        raise Outdated(f"{name} was changed by someone else at the same moment") from None


def expect(is_unchanged: bool, name: str) -> None:  # noqa: FBT001 -- a guard reads best so
    """Raise Outdated if something is not what it was taken for."""
    if not is_unchanged:
        raise Outdated(f"{name} was changed by someone else at the same moment")


def most(limit: int) -> int | None:
    """Return a limit as PostgreSQL knows it: below zero there is none."""
    return limit if limit >= 0 else None


def word(text: str) -> str | None:
    """Return a name as PostgreSQL can look for it: one that is not UTF-8, or holds a NUL, names nothing."""
    return None if "\0" in text else name_or_none(text)


def words(texts: Sequence[str]) -> list[str]:
    """Return those names that can name something."""
    return [found for text in texts if (found := word(text)) is not None]


def prefix_range(prefix: str) -> tuple[str | None, str | None]:
    """Return the first string that begins with the prefix, and one that comes after all of those."""
    first = word(prefix)
    return (None, None) if first is None else (first, f"{first}\U0010ffff")

"""The small steps that all rows are read and written with."""

import os
from collections.abc import Sequence

from adjourn.core.errors import NotFound, Outdated
from adjourn.core.events import Event
from adjourn.core.task import number_of_run, task_of_run
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

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._db.all(SQL[query], *values)

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

    def finish(self) -> str:
        """Write what was kept back until the end, and return the number of the transaction, which is about to commit."""
        for no, head in self._heads.values():
            self._run("update_head", no, head)
        self._seal()
        ((_, number),) = self._all("notify")
        return str(number)


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

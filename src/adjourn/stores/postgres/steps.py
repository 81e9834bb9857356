"""The small steps that all rows are read and written with."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from adjourn.core.ask import Ask
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated
from adjourn.core.events import Event
from adjourn.core.task import Run, Task, number_of_run, task_of_run
from adjourn.ports.store import Turn
from adjourn.stores.bodies import event_body, name_or_none
from adjourn.stores.postgres.database import Database
from adjourn.stores.postgres.line import Statement, Values

BITS = 20
LAST = (1 << BITS) - 1
NEWEST = 1 << 62


def _named(text: str) -> dict[str, bytes]:
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name: statement.encode() for name, _, statement in parts}


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    SQL = _named(_file.read())


class Known:
    """What a transaction has read or written of tasks that nobody else can change: it is true until the end."""

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.runs: dict[int, Run] = {}
        self.calls: dict[int, Call] = {}
        self.asks: dict[str, Ask] = {}
        self.heads: dict[int, bytes] = {}
        self.requesters: dict[int, str] = {}
        # Of tasks that were looked at as a whole: asks that are open or of the last run, open calls, what that run did not get.
        self.last_runs: dict[int, int] = {}
        self.asks_of: dict[int, dict[int, Ask]] = {}
        self.calls_of: dict[int, dict[int, Call]] = {}
        self.turns_of: dict[int, list[Turn]] = {}


class Unwritten:
    """What is to be written: of one task in the order in which it was said, and many tasks together."""

    def __init__(self) -> None:
        self._groups: list[tuple[str, dict[int, Values]]] = []
        self._first = 0  # the first group that may still grow
        self._last: dict[int, int] = {}  # of each task, the group that it stands in last

    def add(self, query: str, task: int, row: Values) -> None:
        """Write a row of a task, known by its first value; of several writes of one row in a group the last counts."""
        places = range(max(self._first, self._last.get(task, 0)), len(self._groups))
        place = next((place for place in places if self._groups[place][0] == query), len(self._groups))
        if place == len(self._groups):
            self._groups.append((query, {}))
        self._groups[place][1][row[0]] = row
        self._last[task] = place

    def add_alone(self, query: str, values: Values) -> None:
        """Say something after all that was said before, and before all that is said later."""
        self._groups.append((query, {0: values}))
        self._first = len(self._groups)

    def statements(self) -> list[Statement]:
        """Return what is to be said: alone with its values, or of many rows with all values of a column in one."""
        return [(SQL[query], _columns(rows) if query in _TOGETHER else rows[0]) for query, rows in self._groups]


_TOGETHER = frozenset(
    {
        "write_task",
        "write_run",
        "write_call",
        "update_call_body",
        "write_ask",
        "update_ask_body",
        "update_head",
        "put_back",
        "hold",
        "fence",
    }
)


def _columns(rows: dict[int, Values]) -> Values:
    return tuple(list(column) for column in zip(*rows.values(), strict=True))


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
        self._unwritten = Unwritten()

    def _all(self, query: str, *values: object) -> list[Values]:
        return self._each((query, values))[0]

    def _each(self, *queries: tuple[str, Values]) -> list[list[Values]]:
        """Ask several things in one go, after saying what is still to be written."""
        unwritten = self._unsaid()
        found = self._db.batch([*unwritten, *((SQL[query], values) for query, values in queries)])
        return found[len(unwritten) :]

    def _unsaid(self) -> list[Statement]:
        unwritten, self._unwritten = self._unwritten, Unwritten()
        return unwritten.statements()

    def _later(self, query: str, task: int, *row: object) -> None:
        """Write a row before anything else is asked."""
        self._unwritten.add(query, task, row)

    def _one(self, query: str, *values: object) -> Values | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

    def _run(self, query: str, *values: object) -> None:
        """Say something before anything else is asked."""
        self._unwritten.add_alone(query, values)

    def _no(self, task_id: str) -> int:
        if task_id not in self._numbers:
            self._find_number(task_id)
        if task_id not in self._numbers:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return self._numbers[task_id]

    def _find_number(self, task_id: str) -> None:
        """Remember a task's number."""
        if row := self._one("task_no", word(task_id)):
            self._remember(task_id, int(row[0]))

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

    def finish(self) -> list[Statement]:
        """Return what was kept back until the end: the last words before the commit."""
        for no, head in self._heads.values():
            self._later("update_head", no, no, head)
        self._seal()
        self._run("notify")
        return self._unsaid()


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

"""The statements of queries.sql, and what a transaction has still to write.

A statement that begins with `-- rows:` writes one row, or many in one go.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from adjourn.stores.postgres.connection import Statement, Values
from adjourn.stores.rows import statements_in

SCHEMA = 6  # the version that these statements are about
_ROWS = "-- rows: "  # what a row has, column by column with its type
# What each queue has a function of its own for
_OF_A_QUEUE = ("enqueue", "dequeue", "hold", "fence")
_LONGEST = 40  # bytes of a pool's name that fit into the name of a table


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    _TEXTS = statements_in(_file.read().replace("{schema}", str(SCHEMA)))

SQL = {name: text.encode() for name, text in _TEXTS.items()}
OF_ROWS = frozenset(name for name, text in _TEXTS.items() if text.startswith(_ROWS))


@cache
def _columns(query: str) -> list[tuple[str, str]]:
    """Return the names and types of what a row has."""
    words = _TEXTS[query].partition("\n")[0].removeprefix(_ROWS).split(", ")
    return [(name, kind) for name, _, kind in (word.partition(" ") for word in words)]


def write_rows(query: str, pool: str, rows: Sequence[Values]) -> Statement:
    """Return a statement that writes rows; one alone costs no lists."""
    if len(rows) == 1:
        return _of_one(query, pool), rows[0]
    return _of_many(query, pool), tuple(map(list, zip(*rows, strict=True)))


def read_about(query: str, *, asks: Sequence[str] = (), tasks: Sequence[str] = ()) -> Statement:
    """Return a statement about the tasks that are named, or whose asks are.

    One alone costs no list.
    """
    if len(asks) + len(tasks) == 1:
        return _named_by(query, _OF_ASK if asks else _OF_TASK), (*asks, *tasks)
    return _named_by(query, _OF_MANY), (list(asks), list(tasks))


_OF_ASK = "= (SELECT no >> 20 FROM adjourn.ask WHERE id = $1::text)"
_OF_TASK = "= (SELECT no FROM adjourn.task WHERE id = $1::text)"
_OF_MANY = (
    "= ANY(ARRAY(SELECT task FROM adjourn.tasks_named($1::text[], $2::text[]) AS named (task)))"
)


@cache
def _named_by(query: str, names: str) -> bytes:
    return _TEXTS[query].replace("{named}", names).encode()


@cache
def _of_one(query: str, pool: str) -> bytes:
    places = ", ".join(
        f"${place}::{kind}" for place, (_, kind) in enumerate(_columns(query), start=1)
    )
    return _about(query, pool, given=f"(VALUES ({places}))")


@cache
def _of_many(query: str, pool: str) -> bytes:
    places = ", ".join(
        f"${place}::{kind}[]" for place, (_, kind) in enumerate(_columns(query), start=1)
    )
    return _about(query, pool, given=f"unnest({places})")


def _about(query: str, pool: str, *, given: str) -> bytes:
    names = ", ".join(name for name, _ in _columns(query))
    return _in_queue(_TEXTS[query].replace("{given}", f"{given} AS given ({names})"), pool)


def _in_queue(text: str, pool: str) -> bytes:
    for verb in _OF_A_QUEUE:
        text = text.replace(f"{{{verb}}}", _function(verb, pool))
    return text.encode()


def _function(verb: str, pool: str) -> str:
    """Name a function of the engine's queue of a pool, as adjourn.make_queue_functions does."""
    known = pool if len(pool.encode()) <= _LONGEST else _digest(pool)
    return '"' + f"{verb}_adjourn_{known}".replace('"', '""') + '"'


def _digest(pool: str) -> str:
    from hashlib import md5  # slow, and seldom needed

    return md5(pool.encode(), usedforsecurity=False).hexdigest()


class _Group(NamedTuple):
    """Rows that are written by one statement."""

    query: str
    pool: str
    rows: dict[int, Values]

    def statement(self) -> Statement:
        """Return what is to be said: of rows, or alone with its values."""
        if self.query in OF_ROWS:
            return write_rows(self.query, self.pool, list(self.rows.values()))
        return SQL[self.query], self.rows[0]


class WriteBatch:
    """What is to be written: of one task in order, and rows of many tasks by one statement.

    Ten thousand decisions are then a few statements, and a single one is a single round trip.
    """

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._first = 0  # the first group that may still grow
        self._last: dict[int, int] = {}  # of each task, the group that it stands in last

    def add(self, query: str, task: int, row: Values, *, pool: str = "") -> None:
        """Write a row of a task, known by its first value.

        Of several writes of one row in a group the last counts.
        """
        places = range(max(self._first, self._last.get(task, 0)), len(self._groups))
        place = next(
            (place for place in places if self._groups[place][:2] == (query, pool)),
            len(self._groups),
        )
        if place == len(self._groups):
            self._groups.append(_Group(query, pool, {}))
        self._groups[place].rows[row[0]] = row
        self._last[task] = place

    def add_alone(self, query: str, values: Values) -> None:
        """Say something after all that was said before, and before all that is said later."""
        self._groups.append(_Group(query, "", {0: values}))
        self._first = len(self._groups)

    def complete(self, query: str, task: int, value: object) -> bool:
        """Give a row that is still to be written its last value, and say whether there was one."""
        for group in reversed(self._groups):
            if group.query == query and task in group.rows:
                group.rows[task] = (*group.rows[task][:-1], value)
                return True
        return False

    def statements(self) -> list[Statement]:
        """Return all that is to be said, in its order."""
        return [group.statement() for group in self._groups]

"""The statements of queries.sql as they are said.

Plainly, or of one row or many, about the engine's queue of one pool.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct, pack
from typing import Any, NamedTuple

from adjourn.stores.postgres.connection import Encoded, Statement, Values
from adjourn.stores.rows import statements_in

SCHEMA = 3  # the version that these statements are about
_ROWS = "-- rows: "  # what a row has, column by column with its type
# What each queue has a function of its own for
_OF_A_QUEUE = ("enqueue", "dequeue", "hold", "fence")
_LONGEST = 40  # bytes of a pool's name that fit into the name of a table


with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as _file:
    _TEXTS = statements_in(_file.read().replace("{schema}", str(SCHEMA)))

SQL = {name: text.encode() for name, text in _TEXTS.items()}
OF_ROWS = frozenset(name for name, text in _TEXTS.items() if text.startswith(_ROWS))


class _Type(NamedTuple):
    """How PostgreSQL knows a type, and how its values go over the line."""

    oid: int
    encoded: Callable[[Any], bytes]


def _uuid(text: str) -> bytes:
    return bytes.fromhex(text.replace("-", ""))


_TYPES = {
    "bigint": _Type(20, Struct("!q").pack),
    "integer": _Type(23, Struct("!i").pack),
    "double precision": _Type(701, Struct("!d").pack),
    "text": _Type(25, str.encode),
    "bytea": _Type(17, bytes),
    "uuid": _Type(2950, _uuid),
}


@cache
def _columns(query: str) -> list[tuple[str, str]]:
    """Return the names and types of what a row has."""
    words = _TEXTS[query].partition("\n")[0].removeprefix(_ROWS).split(", ")
    return [(name, kind) for name, _, kind in (word.partition(" ") for word in words)]


@cache
def _kinds(query: str) -> list[_Type]:
    """Return the types of what a row has."""
    return [_TYPES[kind] for _, kind in _columns(query)]


def said_of(query: str, pool: str, rows: Sequence[Values]) -> Statement:
    """Return a statement about rows.

    One alone costs no list; the server knows all types from the statement.
    """
    kinds = _kinds(query)
    if len(rows) == 1:
        values = zip(kinds, rows[0], strict=True)
        return _of_one(query, pool), Encoded(
            [None if value is None else kind.encoded(value) for kind, value in values]
        )
    columns = zip(kinds, zip(*rows, strict=True), strict=True)
    return _of_many(query, pool), Encoded([_list(kind, values) for kind, values in columns])


def _list(kind: _Type, values: Values) -> bytes:
    # One dimension, perhaps with nulls, counted from 1
    parts = [pack("!iIIii", 1, 1, kind.oid, len(values), 1)]
    for value in values:
        encoded = None if value is None else kind.encoded(value)
        parts += [pack("!i", -1)] if encoded is None else [pack("!i", len(encoded)), encoded]
    return b"".join(parts)


def said_about(query: str, *, asks: Sequence[str] = (), tasks: Sequence[str] = ()) -> Statement:
    """Return a statement about the tasks that are named, or whose asks are.

    One alone costs no list.
    """
    if len(asks) + len(tasks) == 1:
        return _named_by(query, _OF_ASK if asks else _OF_TASK), Encoded(
            [name.encode() for name in (*asks, *tasks)]
        )
    return _named_by(query, _OF_MANY), lists(("text", asks), ("text", tasks))


_OF_ASK = "= (SELECT no >> 20 FROM adjourn.ask WHERE id = $1::text)"
_OF_TASK = "= (SELECT no FROM adjourn.task WHERE id = $1::text)"
_OF_MANY = "= ANY(ARRAY(SELECT task FROM adjourn.tasks_named($1, $2) AS named (task)))"


@cache
def _named_by(query: str, names: str) -> bytes:
    return _TEXTS[query].replace("{named}", names).encode()


def lists(*kinds_and_values: tuple[str, Sequence[object]]) -> Encoded:
    """Return lists as a statement's values, each of a type by its name."""
    return Encoded([_list(_TYPES[kind], tuple(values)) for kind, values in kinds_and_values])


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
    rows: dict[int, Values | Encoded]

    def statement(self) -> Statement:
        """Return what is to be said: of rows, or alone with its values."""
        if self.query in OF_ROWS:
            return said_of(self.query, self.pool, list(self.rows.values()))
        return SQL[self.query], self.rows[0]


class Unwritten:
    """What is to be written.

    Of one task in the order in which it was said, and many tasks together.
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

    def add_alone(self, query: str, values: Values | Encoded) -> None:
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

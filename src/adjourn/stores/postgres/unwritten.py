"""What a transaction is to write: kept back until it is said, and then in as few statements as can be."""

from typing import NamedTuple

from adjourn.stores.postgres.line import Encoded, Statement, Values
from adjourn.stores.postgres.statements import OF_ROWS, SQL, said_of


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
    """What is to be written: of one task in the order in which it was said, and many tasks together."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._first = 0  # the first group that may still grow
        self._last: dict[int, int] = {}  # of each task, the group that it stands in last

    def add(self, query: str, task: int, row: Values, *, pool: str = "") -> None:
        """Write a row of a task, known by its first value; of several writes of one row in a group the last counts."""
        places = range(max(self._first, self._last.get(task, 0)), len(self._groups))
        place = next((place for place in places if self._groups[place][:2] == (query, pool)), len(self._groups))
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

"""The one connection to SQLite, with types of our own: the driver's are loose."""

from typing import Any

import apsw

from adjourn.stores.rows import Values

_WAIT_MS = 30_000
_CACHED_STATEMENTS = 100


class SqliteConnection:
    """An open database file."""

    def __init__(self, path: str) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        self._connection: Any = apsw.Connection(
            path, flags=flags, statementcachesize=_CACHED_STATEMENTS
        )
        self._connection.set_busy_timeout(_WAIT_MS)
        # Closing is on the path of every command
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Else most statements are planned anew at each new value
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.in_transaction)

    def all(self, statement: str, *values: object) -> list[Values]:
        """Run a statement and return its rows."""
        rows: list[Values] = self._connection.execute(statement, values).fetchall()
        return rows

    def has_changed(self, statement: str, *values: object) -> bool:
        """Run a statement that changes a row, and say whether it found one.

        By the count of the connection, for RETURNING makes it half as slow again. Nobody else can
        have written in between: a second thread that wanted to use the connection meanwhile would
        fail at its BEGIN.
        """
        self._connection.execute(statement, values).fetchall()
        return bool(self._connection.changes())

    def many(self, statement: str, rows: list[Values]) -> None:
        """Run a statement that returns nothing once for each of the rows."""
        self._connection.executemany(statement, rows).fetchall()

    def last_row(self) -> int:
        """Return the key of the row that was inserted last."""
        return int(self._connection.last_insert_rowid())

    def do(self, statements: str) -> None:
        """Run statements that return nothing."""
        self._connection.execute(statements).fetchall()

    def number(self, pragma: str) -> int:
        """Return what a pragma says."""
        return int(self._connection.pragma(pragma))

    def copy_to(self, path: str) -> None:
        """Copy everything, as of one moment, into another database file."""
        target: Any = apsw.Connection(path)
        with target.backup("main", self._connection, "main") as backup:
            backup.step(-1)
        target.execute("PRAGMA journal_mode = DELETE")
        target.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

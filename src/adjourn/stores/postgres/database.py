"""One connection to PostgreSQL, with types of our own, and what goes wrong with it as a sentence."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from logging import NullHandler, getLogger
from typing import Any

import psycopg
from psycopg import RawCursor, errors
from psycopg.conninfo import conninfo_to_dict

from adjourn.core.errors import AdjournError, StoreProblem, StoreRefused
from adjourn.stores.postgres.patience import Patience

Values = tuple[Any, ...]  # what PostgreSQL hands out; each reader gives it a type at once

_PATIENCE = 10  # seconds to reach the server
_SILENCE_MS = 20_000  # how long a server may leave our words unacknowledged before it counts as gone


class Database:
    """A connection that is made when it is needed, and again after it broke."""

    def __init__(self, url: str, *, prepares: bool = True, patience: Patience | None = None) -> None:
        self._url = url
        self._waiting = patience.waiting if patience else nullcontext
        self._prepares = prepares
        self._connection: psycopg.Connection[Values] | None = None
        if not (log := getLogger("psycopg")).handlers:
            log.addHandler(NullHandler())  # what goes wrong is told by us, once, and as a sentence

    @property
    def name(self) -> str:
        """The database as people may see it: where it is, never with which password."""
        return shown(self._url)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._connection is not None and not self._connection.closed

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open on a connection that works."""
        return self.is_open and self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def connection(self) -> "psycopg.Connection[Values]":
        """The connection, made if need be."""
        if self._connection is None or self._connection.closed:
            self.close()
            with self._waiting():
                self._connection = self._connected()
        return self._connection

    def _connected(self) -> "psycopg.Connection[Values]":
        return psycopg.connect(
            self._url,
            autocommit=True,
            cursor_factory=RawCursor,
            prepare_threshold=5 if self._prepares else None,
            connect_timeout=_PATIENCE,
            tcp_user_timeout=_SILENCE_MS,
            keepalives_idle=10,
            application_name="adjourn",
        )

    def all(self, statement: bytes, *values: object) -> list[Values]:
        """Run a statement and return its rows, if it has any."""
        connection = self.connection
        with self._waiting():
            cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []

    def many(self, statement: bytes, rows: list[Values]) -> int:
        """Run a statement once for each of the rows, without waiting in between, and return how many it found."""
        with self.connection.cursor() as cursor, self._waiting():
            cursor.executemany(statement, rows)
            return cursor.rowcount

    def last(self, statements: bytes) -> list[Values]:
        """Run statements in one go and return the rows of the last."""
        connection = self.connection
        with self._waiting():
            cursor = connection.execute(statements)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def shown(url: str) -> str:
    """Return a database's address without its password."""
    try:
        words = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        said = str(error).partition(': "')[0]  # what is quoted behind may be a part of the password
        raise StoreProblem(f"the URL of the store cannot be used: {said}", way_out="check the URL of the store") from None
    host = words.get("host") or words.get("hostaddr") or "localhost"
    where = f"{host}:{words['port']}" if words.get("port") else str(host)
    return f"the database {words.get('dbname') or ''} at {where}"


@contextmanager
def translated(name: str) -> Generator[None, None, None]:
    """Turn PostgreSQL's errors into sentences."""
    try:
        yield
    except AdjournError:
        raise
    except psycopg.Error as error:
        raise _problem(name, error) from error


# What the server says of itself, by class; what it says at the door has none.
_SENTENCES: list[tuple[tuple[type[psycopg.Error], ...], str, str]] = [
    ((errors.InsufficientPrivilege,), "{name} does not allow this: {said}", "use a role that may, in the URL of the store"),
    ((errors.ReadOnlySqlTransaction,), "{name} is read-only: {said}", "name the primary server, or wait until it is writable"),
    ((errors.TooManyConnections,), "{name} has no connection left", "say it again, or raise max_connections"),
    ((errors.UniqueViolation,), "it is there already: {said}", "say it again"),
    ((errors.DeadlockDetected, errors.LockNotAvailable), "others changed the same in {name} at the same moment", "say it again"),
    ((errors.DiskFull,), "the disk of {name} is full", "free some space and say it again"),
    (
        (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName),
        "{name} has not the schema of this program: {said}",
        "adjourn store migrate",
    ),
    ((psycopg.ProgrammingError,), "{name} cannot be used: {said}", "check the URL of the store"),
    ((psycopg.OperationalError,), "{name} cannot be reached: {said}", "check the server and the URL, and say it again"),
    ((psycopg.Error,), "{name} cannot be used: {said}", "check the server, and say it again"),
]


def _problem(name: str, error: psycopg.Error) -> StoreProblem:
    said = " ".join(str(error).split())
    if "too many" in said or "remaining connection slots" in said:
        error = errors.TooManyConnections()
    elif _is_refusal(error, said):
        return StoreRefused(f"{name} does not let us in: {said}", way_out="check user and password in the URL of the store")
    sentence, way_out = next((sentence, way_out) for kinds, sentence, way_out in _SENTENCES if isinstance(error, kinds))
    kind = StoreRefused if isinstance(error, errors.InsufficientPrivilege) else StoreProblem
    return kind(sentence.format(name=name, said=said), way_out=way_out)


def _is_refusal(error: psycopg.Error, said: str) -> bool:
    """Say whether the server turned us away; at the door its errors have no class of their own."""
    at_the_door = ("password", "authentication", "pg_hba.conf", 'role "')
    return (error.sqlstate or "").startswith("28") or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate is None and any(word in said for word in at_the_door)
    )

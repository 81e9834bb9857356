"""One connection to PostgreSQL, with types of our own, and what goes wrong with it as a sentence."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from logging import NullHandler, getLogger
from typing import NamedTuple

import psycopg
from psycopg import RawCursor, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.generators import fetch_many

from adjourn.core.errors import AdjournError, Conflict, Outdated, StoreProblem, StoreRefused
from adjourn.stores.postgres.line import Line, Statement, Values
from adjourn.stores.postgres.patience import Patience

_PATIENCE = 10  # seconds to reach the server
_SILENCE_MS = 20_000  # how long a server may leave our words unacknowledged before it counts as gone
_OUTDATED = "AJ001"  # what adjourn.require raises
_TAKEN = "AJ002"  # what adjourn.guard raises


class Opening(NamedTuple):
    """How a transaction begins: a statement, a first look, and who is told what that saw."""

    begin: bytes
    look: bytes
    then: Callable[[Values], None]


class Database:
    """A connection that is made when it is needed, and again after it broke."""

    def __init__(self, url: str, *, prepares: bool = True, patience: Patience | None = None) -> None:
        self._url = url
        self._waiting = patience.waiting if patience else nullcontext
        self._prepares = prepares
        self._connection: psycopg.Connection[Values] | None = None
        self._made = 0  # connections so far
        self._line: Line | None = None
        self._opening: Opening | None = None
        self._is_leaving = False
        self.queues: set[str] = set()  # pools whose queue is known to be there
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
        self._hear_of_leaving()
        return self.is_open and self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def connection(self) -> "psycopg.Connection[Values]":
        """The connection, made if need be."""
        self._hear_of_leaving()
        if self._connection is None or self._connection.closed:
            self.close()
            with self._waiting():
                self._connection = self._connected()
            self._made += 1
        return self._connection

    def _connected(self) -> "psycopg.Connection[Values]":
        return psycopg.connect(
            self._url,
            autocommit=True,
            cursor_factory=RawCursor,
            prepare_threshold=None,
            options=_options(self._url, plans_once=self._prepares),
            connect_timeout=_PATIENCE,
            tcp_user_timeout=_SILENCE_MS,
            keepalives_idle=10,
            application_name="adjourn",
        )

    def reach(self) -> int:
        """Make the connection if need be, and return which one it is: another may lead to another server."""
        _ = self.connection
        return self._made

    def begin(self, opening: Opening) -> None:
        """Have a transaction begin with the next statement: both go out in one go."""
        self._opening = opening

    def open(self) -> None:
        """Begin now, if a transaction is about to begin."""
        if self._opening:
            self.batch([])

    def all(self, statement: bytes, *values: object) -> list[Values]:
        """Run a statement and return its rows, if it has any."""
        return self.batch([(statement, values)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run statements without waiting in between, and return the rows of each; after one that fails none is run."""
        opening, self._opening = self._opening, None
        if opening is None:
            return self._said(statements)
        _, (seen,), *rows = self._said_first([(opening.begin, ()), (opening.look, ()), *statements])
        opening.then(seen)
        return rows

    def commit(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run the last statements and commit, never a second time. What begins only here has seen enough, and does not look."""
        opening, self._opening = self._opening, None
        begin: list[Statement] = [(opening.begin, ())] if opening else []
        return self._said([*begin, *statements, (b"COMMIT", ())])[len(begin) : -1]

    def _said_first(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Begin, on a new connection if the old one broke meanwhile: nothing was said on it yet."""
        was_open = self.is_open
        try:
            return self._said(statements)
        except psycopg.OperationalError:
            if not was_open or self.is_open:
                raise
            return self._said(statements)

    def _said(self, statements: Sequence[Statement]) -> list[list[Values]]:
        if self._line is None or not self.is_open:
            self._line = Line(self.connection, prepares=self._prepares)
        self._hear_of_leaving()
        with self._waiting():
            return self._line.say(statements)

    def last(self, statements: bytes) -> list[Values]:
        """Run statements in one go and return the rows of the last."""
        connection = self.connection
        with self._waiting():
            cursor = connection.execute(statements)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def roll_back(self) -> None:
        """Leave the transaction, if one is open, and nothing of it behind."""
        self._opening = None
        if self.is_in_transaction:
            self.all(b"ROLLBACK")

    def leave(self) -> None:
        """Leave a view. Nobody waits for the server's word on that: it is heard before its word on the next statement."""
        self._opening = None
        if self.is_in_transaction:
            self.connection.pgconn.send_query(b"ROLLBACK")
            self.connection.pgconn.flush()
            self._is_leaving = True

    def _hear_of_leaving(self) -> None:
        if self._is_leaving and self._connection is not None:
            self._is_leaving = False
            with suppress(psycopg.OperationalError):  # a connection that broke is made again
                self._connection.wait(fetch_many(self._connection.pgconn))

    def close(self) -> None:
        """Let go of the connection."""
        self._is_leaving = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._line = None


def _options(url: str, *, plans_once: bool) -> str | None:
    """Have statements planned once: each of ours is led by an index, whatever its values are."""
    given = str(conninfo_to_dict(url).get("options") or "")
    return f"{given} -c plan_cache_mode=force_generic_plan" if plans_once else given or None


def shown(url: str) -> str:
    """Return a database's address without its password."""
    try:
        words = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        said = str(error).partition(': "')[0]  # what is quoted behind may be a part of the password
        raise StoreProblem(f"the URL of the store cannot be used: {said}", way_out="check the URL of the store") from None
    host = words.get("host") or words.get("hostaddr") or "localhost"
    where = f"{host}:{words['port']}" if words.get("port") else str(host)
    name = words.get("dbname") or words.get("user")  # which is what the server takes for it
    return f"the database {name} at {where}" if name else f"the default database at {where}"


@contextmanager
def translated(name: str) -> Generator[None, None, None]:
    """Turn PostgreSQL's errors into sentences."""
    try:
        yield
    except AdjournError:
        raise
    except psycopg.Error as error:
        if error.sqlstate == _OUTDATED:
            raise Outdated(str(error.diag.message_primary)) from error
        if error.sqlstate == _TAKEN:
            raise Conflict(str(error.diag.message_primary), way_out="adjourn tasks") from error
        raise _problem(name, error) from error


_POOLER = "ADJOURN_LISTEN=postgresql://… that leads to the server itself, or ADJOURN_LISTEN=off"
_FULL = ("too many", "remaining connection slots", "no more connections")
_AT_A_POOLERS_DOOR = "unsupported startup parameter"

# What the server says of itself, by class; what it says at the door has none.
_SENTENCES: list[tuple[tuple[type[psycopg.Error], ...], str, str]] = [
    ((errors.InsufficientPrivilege,), "{name} does not allow this: {said}", "use a role that may, in the URL of the store"),
    ((errors.InvalidCatalogName,), "{name} does not exist", "make it with createdb, or check the URL of the store"),
    ((errors.ReadOnlySqlTransaction,), "{name} is read-only: {said}", "name the primary server, or wait until it is writable"),
    ((errors.TooManyConnections,), "{name} has no connection left", "say it again, or raise max_connections"),
    ((errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement), "{name} is behind a pooler: {said}", _POOLER),
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
    said = _short(str(error))
    if any(words in said for words in _FULL):
        error = errors.TooManyConnections()
    elif said.startswith('database "') and said.endswith("does not exist"):
        error = errors.InvalidCatalogName(said)
    elif _AT_A_POOLERS_DOOR in said:
        error = errors.InvalidSqlStatementName(said)
    elif _is_refusal(error, said):
        return StoreRefused(f"{name} does not let us in: {said}", way_out="check user and password in the URL of the store")
    sentence, way_out = next((sentence, way_out) for kinds, sentence, way_out in _SENTENCES if isinstance(error, kinds))
    kind = StoreRefused if isinstance(error, errors.InsufficientPrivilege) else StoreProblem
    return kind(sentence.format(name=name, said=said), way_out=way_out)


def _short(said: str) -> str:
    """Leave out what our own sentence says as well: that we tried to connect, and where; of several servers each is named."""
    import re  # slow, and seldom needed

    hints_left_out = re.sub(r"\s*Is the server running [^?]*\?", "", " ".join(said.split()))
    if hints_left_out.count("connection to server") > 1:
        return hints_left_out
    return re.sub(r"^connection (failed|is bad): |connection to server (at|on socket) .*? failed: |FATAL: ", "", hints_left_out)


def _is_refusal(error: psycopg.Error, said: str) -> bool:
    """Say whether the server turned us away; at the door its errors have no class of their own."""
    at_the_door = ("password", "authentication", "pg_hba.conf", 'role "')
    return (error.sqlstate or "").startswith("28") or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate is None and any(word in said for word in at_the_door)
    )

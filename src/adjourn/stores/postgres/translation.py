"""What a database is called, and what goes wrong with it, as a sentence."""

from types import TracebackType
from typing import NamedTuple

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from adjourn.core.errors import (
    AdjournError,
    Conflict,
    Misuse,
    Outdated,
    StoreProblem,
    StoreReadOnly,
    StoreRefused,
)
from adjourn.core.text.render import command_line

_FLAGS = {"-h": "host", "-p": "port", "-U": "user"}


class DatabaseName(NamedTuple):
    """A database as people may see it: where it is, never with which password."""

    words: str
    options: str  # how the programs of PostgreSQL are told where it is
    database: str

    def __str__(self) -> str:
        return self.words


def shown(url: str) -> DatabaseName:
    """Return a database's address without its password."""
    words = _words_of(url)
    host = words.get("host") or words.get("hostaddr") or "localhost"
    where = f"{host}:{words['port']}" if words.get("port") else str(host)
    # Which is what the server takes for it
    database = str(words.get("dbname") or words.get("user") or "")
    options = [
        word for flag, key in _FLAGS.items() if words.get(key) for word in (flag, str(words[key]))
    ]
    said = f"the database {database} at {where}" if database else f"the default database at {where}"
    return DatabaseName(said, command_line(options), command_line([database] if database else []))


def _words_of(url: str) -> dict[str, str | int | None]:
    _require_plain_signs(url)
    try:
        words = conninfo_to_dict(url)
        ports = [int(port) for port in str(words.get("port") or "").split(",") if port]
    except psycopg.ProgrammingError as error:
        raise _no_url(_without_quotes(str(error))) from None
    except ValueError:
        raise _no_url("its port is no number") from None
    return words if ports else words | {"port": None}  # of several hosts none has a port of its own


def _require_plain_signs(url: str) -> None:
    """Refuse an @ that parts nothing.

    What follows would be taken for the host, and shown, and is the rest of a password.
    """
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise _no_url(
            "an @ that belongs to a user, a password or a name is written as %40, and a / as %2F"
        )


def _without_quotes(said: str) -> str:
    """Leave out what is quoted: it may be a part of the password."""
    before, _, rest = said.strip().partition('"')
    if not rest or before.endswith(": "):
        return before.removesuffix(": ")
    _, _, after = rest.rpartition('"')
    return f"{before}it{after}"


def _no_url(why: str) -> Misuse:
    return Misuse(
        f"the URL of the store cannot be used: {why}",
        way_out="ADJOURN_STORE=postgresql://USER@HOST/DATABASE",
    )


class Translated:
    """Turns PostgreSQL's errors into sentences; as often as wanted."""

    def __init__(self, name: DatabaseName) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, psycopg.Error):
            raise _sentence_for(self._name, error) from error


def _sentence_for(name: DatabaseName, error: psycopg.Error) -> AdjournError:
    match error.sqlstate:
        case "AJ001":  # what adjourn.require raises
            return Outdated(str(error.diag.message_primary))
        case "AJ002":  # what adjourn.guard raises
            return Conflict(str(error.diag.message_primary), way_out="adjourn tasks")
        case "AJ003":  # what adjourn.require_schema raises
            return newer_schema(name, str(error.diag.message_primary))
        case _:
            return _problem(name, error)


def newer_schema(name: DatabaseName, has: str) -> StoreProblem:
    """Say that the database was brought up to date by a newer program than this one."""
    return StoreProblem(f"{name} has {has}", way_out="use a newer adjourn: pip install -U adjourn")


_AWAY = "run the command again once the server is up: pg_isready {name.options}"
_POOLER = "ADJOURN_LISTEN=postgresql://… that leads to the server itself, or ADJOURN_LISTEN=off"
_FULL = ("too many", "remaining connection slots", "no more connections")
_AT_THE_DOOR = (
    "check user and password in the URL of the store: psql {name.options} {name.database}"
)
_AT_A_POOLERS_DOOR = "unsupported startup parameter"

# What the server says of itself, by class; what it says at the door has none.
_SENTENCES: list[tuple[tuple[type[psycopg.Error], ...], str, str]] = [
    (
        (errors.InsufficientPrivilege,),
        "{name} does not allow this: {said}",
        "adjourn doctor says which login this is; use one that may",
    ),
    (
        (errors.InvalidCatalogName,),
        "{name} does not exist",
        "createdb {name.options} {name.database}",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "{name} is read-only: {said}",
        "name the primary server, or wait until it is writable",
    ),
    (
        (errors.TooManyConnections,),
        "{name} has no connection left",
        "run the command again, or raise max_connections",
    ),
    (
        (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement),
        "{name} is behind a pooler: {said}",
        _POOLER,
    ),
    ((errors.UniqueViolation,), "it is there already: {said}", "run the command again"),
    ((errors.LockNotAvailable,), "{name} kept us waiting: {said}", "run the command again"),
    (
        (errors.DeadlockDetected, errors.SerializationFailure),
        "others changed the same in {name} at the same moment",
        "run the command again",
    ),
    (
        (errors.QueryCanceled,),
        "{name} did not let this go on: {said}",
        "run the command again, or allow more time for a statement",
    ),
    ((errors.DiskFull,), "the disk of {name} is full", "free some space, then try again"),
    (
        (
            errors.UndefinedTable,
            errors.UndefinedColumn,
            errors.UndefinedFunction,
            errors.InvalidSchemaName,
        ),
        "{name} has not the schema of this program: {said}",
        "adjourn store migrate",
    ),
    ((psycopg.ProgrammingError,), "{name} cannot be used: {said}", "check the URL of the store"),
    (
        (psycopg.OperationalError,),
        "{name} cannot be reached: {said}",
        _AWAY,
    ),
    ((psycopg.Error,), "{name} cannot be used: {said}", "check the server, then try again"),
]
_KINDS = {errors.InsufficientPrivilege: StoreRefused, errors.ReadOnlySqlTransaction: StoreReadOnly}


def _problem(name: DatabaseName, error: psycopg.Error) -> StoreProblem:
    # Without its place in our own statements
    said = error.diag.message_primary or _short(str(error))
    if any(words in said for words in _FULL):
        error = errors.TooManyConnections()
    elif said.startswith('database "') and said.endswith("does not exist"):
        error = errors.InvalidCatalogName(said)
    elif _AT_A_POOLERS_DOOR in said:
        error = errors.InvalidSqlStatementName(said)
    elif _is_refusal(error, said):
        return StoreRefused(
            f"{name} does not let us in: {said}", way_out=_way_out(_AT_THE_DOOR, name)
        )
    sentence, way_out = next(
        (sentence, way_out) for kinds, sentence, way_out in _SENTENCES if isinstance(error, kinds)
    )
    kind = next((kind for cause, kind in _KINDS.items() if isinstance(error, cause)), StoreProblem)
    return kind(sentence.format(name=name, said=said), way_out=_way_out(way_out, name))


def _way_out(words: str, name: DatabaseName) -> str:
    return " ".join(words.format(name=name).split())


def _short(said: str) -> str:
    """Leave out what our own sentence says as well.

    That we tried to connect, and where; of several servers each is named.
    """
    import re  # slow, and seldom needed

    hints_left_out = re.sub(r"\s*Is the server running [^?]*\?", "", " ".join(said.split()))
    if hints_left_out.count("connection to server") > 1:
        every = hints_left_out.partition("All failures were: ")[2]
        tried = re.findall(
            r"connection to server (?:at|on socket) (.*?) failed: (?:FATAL: )?(.*?)(?= - host: |$)",
            every,
        )
        return "; ".join(f"{where}: {why}" for where, why in tried) or hints_left_out
    return re.sub(
        r"^connection (failed|is bad): |connection to server (at|on socket) .*? failed: |FATAL: ",
        "",
        hints_left_out,
    )


def _is_refusal(error: psycopg.Error, said: str) -> bool:
    """Say whether the server turned us away; at the door its errors have no class of their own."""
    at_the_door = (
        "password",
        "authentication",
        "pg_hba.conf",
        'role "',
        "permission denied for database",
    )
    return (error.sqlstate or "").startswith("28") or (
        isinstance(error, psycopg.OperationalError)
        and error.sqlstate is None
        and any(word in said for word in at_the_door)
    )

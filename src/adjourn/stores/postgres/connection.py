"""One connection to PostgreSQL, made when it is needed, and again after it broke."""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from itertools import accumulate, count
from logging import NullHandler, getLogger
from typing import Any, NamedTuple

import psycopg
from psycopg import RawCursor, generators, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many

from adjourn.stores.postgres.translation import DatabaseName, shown

Values = tuple[Any, ...]  # what PostgreSQL hands out; each reader gives it a type at once


Statement = tuple[bytes, Values]

_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED)


# psycopg has a pipeline, too, but it hands libpq one statement at a time and so wakes the server
# for each. `bench/shared_claim.py` shows what that costs.
class Pipeline:
    """Sends a batch of prepared statements over one connection in one round trip."""

    def __init__(self, connection: "psycopg.Connection[Values]", *, prepares: bool) -> None:
        self._connection = connection
        self._prepares = prepares
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()
        # Each learns a type once
        self._writing, self._reading = Transformer(connection), Transformer(connection)

    def run(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run statements in one go, and return the rows of each; after a failure none is run."""
        self._connection.pgconn.enter_pipeline_mode()
        counts = [self._send(statement, values) for statement, values in statements[:1]]
        self._connection.pgconn.flush()  # the server wakes up while we prepare the rest
        counts += [self._send(statement, values) for statement, values in statements[1:]]
        self._connection.pgconn.pipeline_sync()
        results = self._connection.wait(_results(self._connection.pgconn, sum(counts)))
        self._connection.pgconn.exit_pipeline_mode()
        for result in results:
            if result.status in _FAILED:
                self._names.clear()  # what came after it was not prepared
                raise error_from_result(result, self._connection.info.encoding)
        return [self._rows(results[end - 1]) for end in accumulate(counts)]

    def _send(self, statement: bytes, values: Values) -> int:
        """Send a statement, and return how many answers will come."""
        line = self._connection.pgconn
        parts, types, formats = self._encoded(values)
        if not self._prepares:
            line.send_query_params(statement, parts, types or None, formats, pq.Format.BINARY)
            return 1
        name = self._names.get((statement, types))
        if name is None:
            name = self._names[statement, types] = b"adjourn_%d" % next(self._numbers)
            line.send_prepare(name, statement, types)
            line.send_query_prepared(name, parts, formats, pq.Format.BINARY)
            return 2
        line.send_query_prepared(name, parts, formats, pq.Format.BINARY)
        return 1

    def _encoded(
        self, values: Values
    ) -> "tuple[Sequence[pq.abc.Buffer | None], tuple[int, ...], Sequence[int]]":
        if not values:
            return (), (), ()
        # By itself psycopg sends lists as text, and bytes in them as hexadecimal digits.
        formats = [
            PyFormat.BINARY if value and type(value) is list else PyFormat.AUTO for value in values
        ]
        parts = self._writing.dump_sequence(values, formats)
        return parts, self._writing.types or (), self._writing.formats or ()

    def _rows(self, result: pq.abc.PGresult) -> list[Values]:
        if not result.ntuples:
            return []
        self._reading.set_pgresult(result)
        return self._reading.load_rows(0, result.ntuples, tuple)


def _results(line: pq.abc.PGconn, answers: int) -> Generator[Any, Any, list[pq.abc.PGresult]]:
    """Send what is queued, and collect one result for each statement and one for the sync."""
    yield from generators.send(line)
    results: list[pq.abc.PGresult] = []
    for _ in range(answers):
        results += yield from generators.fetch_many(line)
    yield from generators.fetch_many(line)
    return results


_CONNECT_S = 10  # to reach the server
# How long a server may leave what we sent unacknowledged before it counts as gone
_SILENCE_MS = 20_000


class TransactionStart(NamedTuple):
    """How a transaction begins: a statement, a first query, and what takes the query's row."""

    begin: bytes
    look: bytes
    then: Callable[[Values], None]


class PostgresConnection:
    """A connection that is made when it is needed, and again after it broke."""

    def __init__(self, url: str, *, prepares: bool = True) -> None:
        self._url = url
        self._prepares = prepares
        self._connection: psycopg.Connection[Values] | None = None
        self._made = 0  # connections so far
        self._pipeline: Pipeline | None = None
        self._start: TransactionStart | None = None
        self._is_rolling_back = False
        self.queues: set[str] = set()  # pools whose queue is known to be there
        if not (log := getLogger("psycopg")).handlers:
            log.addHandler(NullHandler())  # our own errors say what went wrong, once

    @property
    def name(self) -> DatabaseName:
        """The database as people may see it."""
        return shown(self._url)

    @property
    def encoding(self) -> str | None:
        """How the server keeps text."""
        return self.connection.info.parameter_status("server_encoding")

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that is not known to be broken."""
        return self._connection is not None and not self._connection.closed

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open on a connection that works."""
        self._finish_rollback()
        return (
            self.is_open
            and self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        )

    @property
    def connection(self) -> "psycopg.Connection[Values]":
        """The connection, made if need be."""
        self._finish_rollback()
        if self._connection is None or self._connection.closed:
            self.close()
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
            connect_timeout=_CONNECT_S,
            tcp_user_timeout=_SILENCE_MS,
            keepalives_idle=10,
            application_name="adjourn",
            client_encoding="UTF8",  # whatever the environment or the login says
        )

    def reach(self) -> int:
        """Make the connection if need be, and return which one it is.

        Another may lead to another server.
        """
        _ = self.connection
        return self._made

    def begin(self, start: TransactionStart) -> None:
        """Begin a transaction together with the next statement, in one round trip."""
        self._start = start

    def open(self) -> None:
        """Begin now, if a transaction is about to begin."""
        if self._start:
            self.batch([])

    def all(self, statement: bytes, *values: object) -> list[Values]:
        """Run a statement and return its rows, if it has any."""
        return self.batch([(statement, values)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run statements without waiting in between, and return the rows of each.

        After one that fails none is run.
        """
        start, self._start = self._start, None
        if start is None:
            return self._send(statements)
        _, (seen,), *rows = self._send_first([(start.begin, ()), (start.look, ()), *statements])
        start.then(seen)
        return rows

    def commit(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run the last statements and commit; nothing is sent a second time."""
        start, self._start = self._start, None
        begin: list[Statement] = [(start.begin, ())] if start else []
        return self._send([*begin, *statements, (b"COMMIT", ())])[len(begin) : -1]

    def _send_first(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Begin, on a new connection if the old one broke meanwhile: nothing was sent on it yet."""
        was_open = self.is_open
        try:
            return self._send(statements)
        except psycopg.OperationalError:
            if not was_open or self.is_open:
                raise
            return self._send(statements)

    def _send(self, statements: Sequence[Statement]) -> list[list[Values]]:
        if self._pipeline is None or not self.is_open:
            self._pipeline = Pipeline(self.connection, prepares=self._prepares)
        self._finish_rollback()
        return self._pipeline.run(statements)

    def last(self, statements: bytes) -> list[Values]:
        """Run statements in one go and return the rows of the last."""
        connection = self.connection
        cursor = connection.execute(statements)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def roll_back(self) -> None:
        """Leave the transaction, if one is open, and nothing of it behind."""
        self._start = None
        if self.is_in_transaction:
            self.all(b"ROLLBACK")

    def leave(self) -> None:
        """End a view without waiting: the server's answer is read before the next statement."""
        start, self._start = self._start, None
        if start is None and self.is_in_transaction:
            self.connection.pgconn.send_query(b"ROLLBACK")
            self.connection.pgconn.flush()
            self._is_rolling_back = True

    def _finish_rollback(self) -> None:
        if self._is_rolling_back and self._connection is not None:
            self._is_rolling_back = False
            with suppress(psycopg.OperationalError):  # a connection that broke is made again
                self._connection.wait(fetch_many(self._connection.pgconn))

    def close(self) -> None:
        """Let go of the connection."""
        self._is_rolling_back = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._pipeline = None


def _options(url: str, *, plans_once: bool) -> str | None:
    """Have statements planned once: each of ours is led by an index, whatever its values are."""
    given = str(conninfo_to_dict(url).get("options") or "")
    return f"{given} -c plan_cache_mode=force_generic_plan" if plans_once else given or None

"""Says many statements to PostgreSQL in one breath: in one packet, each planned once, and hears all answers."""

from collections.abc import Generator, Sequence
from itertools import accumulate, count
from typing import Any, NamedTuple

import psycopg
from psycopg import generators, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

Values = tuple[Any, ...]  # what PostgreSQL hands out; each reader gives it a type at once


class Encoded(NamedTuple):
    """Values as they go over the line, of the types that the statement itself names."""

    parts: list[bytes | None]


Statement = tuple[bytes, Values | Encoded]

_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED)


class Line:
    """What goes over one connection. Where a client's library sends one by one, a busy machine wakes both ends for each."""

    def __init__(self, connection: "psycopg.Connection[Values]", *, prepares: bool) -> None:
        self._connection = connection
        self._prepares = prepares
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()
        self._writing, self._reading = Transformer(connection), Transformer(connection)  # each learns a type once

    def say(self, statements: Sequence[Statement]) -> list[list[Values]]:
        """Run statements in one go, and return the rows of each; after one that fails none is run."""
        self._connection.pgconn.enter_pipeline_mode()
        counts = [self._send(statement, values) for statement, values in statements[:1]]
        self._connection.pgconn.flush()  # the server awakes while we say the rest
        counts += [self._send(statement, values) for statement, values in statements[1:]]
        self._connection.pgconn.pipeline_sync()
        results = self._connection.wait(_heard(self._connection.pgconn, sum(counts)))
        self._connection.pgconn.exit_pipeline_mode()
        for result in results:
            if result.status in _FAILED:
                self._names.clear()  # what came after it was not prepared
                raise error_from_result(result, self._connection.info.encoding)
        return [self._rows(results[end - 1]) for end in accumulate(counts)]

    def _send(self, statement: bytes, values: Values | Encoded) -> int:
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

    def _encoded(self, values: Values | Encoded) -> "tuple[Sequence[pq.abc.Buffer | None], tuple[int, ...], Sequence[int]]":
        if isinstance(values, Encoded):
            return values.parts, (), [pq.Format.BINARY] * len(values.parts)
        if not values:
            return (), (), ()
        parts = self._writing.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return parts, self._writing.types or (), self._writing.formats or ()

    def _rows(self, result: pq.abc.PGresult) -> list[Values]:
        if not result.ntuples:
            return []
        self._reading.set_pgresult(result)
        return self._reading.load_rows(0, result.ntuples, tuple)


def _heard(line: pq.abc.PGconn, answers: int) -> Generator[Any, Any, list[pq.abc.PGresult]]:
    """Send what was said, and collect the answers: one for each, and one that says that this was all."""
    yield from generators.send(line)
    results: list[pq.abc.PGresult] = []
    for _ in range(answers):
        results += yield from generators.fetch_many(line)
    yield from generators.fetch_many(line)
    return results

"""Wakes a process after every commit, by LISTEN on a connection of its own."""

import select
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
import psycopg

from adjourn.core.errors import StoreProblem
from adjourn.stores.postgres.translation import Translated, shown

_CONNECT_S = 5  # to reach the server
# Seconds until it connects again: a process that waits for a silent server does nothing else.
_REST, _LONGEST_REST = 1.0, 30.0

News = dict[str, list[str]]  # of pools, the tasks that came into their queues
_news = msgspec.json.Decoder(News)


class NotifyListener:
    """A connection that listens; where it cannot, the caller must check without being woken."""

    def __init__(self, url: str | None, *, forget: "Callable[[NotifyListener], None]") -> None:
        self._url = url
        self._forget = forget
        # What is polled stays the same, whatever becomes of the connection
        self._poll = select.epoll()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._queued: list[News] = []
        self._rest, self._not_before = _REST, 0.0
        self.trouble: str | None = None
        self._connect()

    def fileno(self) -> int:
        return self._poll.fileno()

    def drain(self) -> None:
        self._queued = []
        if self._connection is not None:
            try:
                self._read_news(self._connection.pgconn)
            except psycopg.Error:
                self._disconnect()
        if self._connection is None and time.monotonic() >= self._not_before:
            self._connect()

    def _connect(self) -> None:
        if self._url is None:
            return
        try:
            with Translated(shown(self._url)):
                self._connection = _listening(self._url)
        except StoreProblem as error:
            self.trouble = error.sentence
            self._not_before, self._rest = (
                time.monotonic() + self._rest,
                min(2 * self._rest, _LONGEST_REST),
            )
        else:
            self.trouble, self._rest = None, _REST
            self._poll.register(self._connection.fileno(), select.EPOLLIN)

    def _read_news(self, line: "psycopg.pq.abc.PGconn") -> None:
        line.consume_input()
        while notice := line.notifies():
            with suppress(msgspec.DecodeError):  # not one of ours: a wake-up, and no more
                self._queued += [_news.decode(notice.extra)] if notice.extra else []

    def next_queued(self, pool: str) -> str | None:
        return next((tasks.pop(0) for news in self._queued if (tasks := news.get(pool))), None)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(OSError, ValueError, psycopg.Error):
                self._poll.unregister(self._connection.fileno())
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self._forget(self)
        self._disconnect()
        self._poll.close()


def _listening(url: str) -> psycopg.Connection[tuple[object, ...]]:
    connection = psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=_CONNECT_S,
        application_name="adjourn ear",
        client_encoding="UTF8",
    )
    try:
        connection.execute("LISTEN adjourn")
    except BaseException:
        connection.close()
        raise
    return connection

"""Renews leases on a connection of its own, so that no transaction can hold it up."""

from collections.abc import Collection
from contextlib import suppress

import psycopg

from adjourn.core.task import run_id, task_of_run
from adjourn.stores.postgres.batch import SQL
from adjourn.stores.postgres.connection import PostgresConnection
from adjourn.stores.postgres.translation import Translated

_LEFTOVERS = 3600  # seconds that a row of the engine stays that nobody took out
_BEATS_A_CLEANING = 100


class PostgresLeases:
    """The leases of one supervisor, and what all machines can read about it."""

    def __init__(self, url: str, *, length: float, machine: str, host: str, about: bytes) -> None:
        self.length = length
        self._db = PostgresConnection(url, prepares=False)
        self._translated = Translated(self._db.name)
        self._self = (machine, host, about)
        self._beats = 0

    def beat(self, supervisor: str, runs: Collection[str]) -> set[str]:
        with self._translated:
            try:
                return self._beat(supervisor, [task_of_run(name) for name in runs])
            except psycopg.Error:
                self._db.close()
                raise

    def _beat(self, supervisor: str, tasks: list[str]) -> set[str]:
        if self._beats % _BEATS_A_CLEANING == 0:
            self._clean_up()
        self._beats += 1
        self._db.all(SQL["appear"], supervisor, *self._self, self.length)
        rows = self._db.all(SQL["beat"], supervisor, int(self.length), tasks) if tasks else []
        return {run_id(task_id, number) for task_id, number in rows}

    def _clean_up(self) -> None:
        with suppress(psycopg.errors.InsufficientPrivilege):
            self._db.all(SQL["clean_up"], _LEFTOVERS)

    def leave(self, supervisor: str) -> None:
        with self._translated:
            self._db.all(SQL["leave"], supervisor)

    def close(self) -> None:
        self._db.close()

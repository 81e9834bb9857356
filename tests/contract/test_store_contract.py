"""Our three stores keep the contract that `adjourn.testing` ships."""

from pathlib import Path

import pytest

from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.testing.memory_store import MemoryStore
from adjourn.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    """Every handle is the same object: it lives as long as the test."""

    _opened: MemoryStore | None = None

    def make_store(self, directory: Path) -> MemoryStore:  # noqa: ARG002 -- it has no files
        self._opened = self._opened or MemoryStore()
        return self._opened


class TestSqliteStore(StoreContract):
    """Every handle is a connection to the file in the directory."""

    def make_store(self, directory: Path) -> SqliteStore:
        return SqliteStore(str(directory / ".adjourn"))


class TestPostgresStore(StoreContract):
    """Every handle is a connection to the test's database."""

    _url: str

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self._url = database

    def make_store(self, directory: Path) -> PostgresStore:  # noqa: ARG002 -- it is elsewhere
        return PostgresStore(self._url)

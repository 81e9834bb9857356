"""The stores that every contract test runs over, and the office in which a controller works on one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.ports.store import Store
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.testing.memory_store import MemoryStore
from adjourn.testing.open_stores import Open
from tests.contract.office import Office


def _opener(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Open:
    if kind == "sqlite":
        return lambda: SqliteStore(str(tmp_path / ".adjourn"))
    if kind == "postgres":
        url = request.getfixturevalue("database")
        return lambda: PostgresStore(url)
    shared = MemoryStore()
    return lambda: shared


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Return what opens one more handle on the same, at first empty, store."""
    opened: list[Store] = []
    opener = _opener(request, request.param, tmp_path)

    def once_more() -> Store:
        store = opener()
        opened.append(store)
        return store

    yield once_more
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    """Return an empty store."""
    return open_store()


@pytest.fixture
def office(store: Store) -> Office:
    """Return an office with an empty store."""
    return Office(store)

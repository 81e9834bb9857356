"""How the contract tests of a store open it."""

import select
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adjourn.ports.store import Listener, Store

Open = Callable[[], Store]


class OpensStores:
    """Opens handles on one store, and closes them after the test."""

    def make_store(self, directory: Path) -> Store:
        """Open the store that belongs to a directory.

        A second call with the same directory opens another handle on the same store.
        """
        raise NotImplementedError

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[Open]:
        """Return a function that opens one more handle on the same, at first empty, store."""
        opened: list[Store] = []

        def open_another() -> Store:
            opened.append(self.make_store(tmp_path))
            return opened[-1]

        yield open_another
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store: Open) -> Store:
        """Return an empty store."""
        return open_store()


def is_awake(listener: Listener, *, within: float = 0) -> bool:
    """Return whether a process that polls the listener would be woken."""
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)
    return bool(poll.poll(within * 1000))

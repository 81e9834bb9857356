"""All stores of this user, as the state directory knows them.

A directory is known by its secret, which its first write made: `stores/ID/key.json`. A database is
known by `stores/PLACE.json`, which its first write from here made: the place of its files, and its
URL without a password. Reading a store registers nothing.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.settings.find_store import is_shared
from adjourn.system.files import private_directory, write_whole
from adjourn.system.machine import state_directory

_PATIENCE = 3.0  # seconds that a database has to answer
_SILENT = f"it did not answer within {_PATIENCE:g} s"

Value = TypeVar("Value")


class RegisteredDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database that was written to from here."""

    place: str
    url: str  # without its password


class StoreRead(msgspec.Struct, Generic[Value], kw_only=True):
    """What was read of one store, or why it could not be."""

    root: str
    found: Value | None = None
    trouble: str | None = None


def register(place: str, url: str) -> None:
    """Remember a database that was just written to. What is lost here comes with the next write."""
    folder = os.path.join(state_directory(os.environ), "stores")
    path = os.path.join(folder, f"{os.path.basename(place)}.json")
    content = msgspec.json.encode(RegisteredDatabase(place=place, url=url))
    # A sandbox may hide the directory: nobody is kept from deciding by that
    with suppress(OSError):
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
            private_directory(folder)
            write_whole(path, content)


def registered_stores() -> list[str]:
    """Return where the stores of this user are that are still there: directories, then databases.

    One that was moved is known again as soon as something is written to it.
    """
    # A command on a database does without SQLite
    from adjourn.stores.sqlite.deleted import StoreFate, known_stores

    state = state_directory(os.environ)
    roots = [known.path for known in known_stores(state) if known.fate is StoreFate.THERE]
    folder = os.path.join(state, "stores")
    names = [name for name in _entries(folder) if name.endswith(".json")]
    for name in sorted(names):
        with suppress(OSError, msgspec.DecodeError), open(os.path.join(folder, name), "rb") as file:
            place = msgspec.json.decode(file.read(), type=RegisteredDatabase).place
            if is_shared(place):
                roots.append(place)
    return list(dict.fromkeys(roots))


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read_each(roots: Sequence[str], read: Callable[[str], Value]) -> list[StoreRead[Value]]:
    """Read several stores. A database that does not answer is given up after 3 s, all at once."""
    results = [StoreRead[Value](root=root) for root in roots]

    def fill(result: StoreRead[Value]) -> None:
        try:
            result.found = read(result.root)
            result.trouble = None
        except AdjournError as error:
            result.trouble = error.sentence

    threads: list[threading.Thread] = []
    for result in results:
        if is_shared(result.root):
            result.trouble = _SILENT
            threads.append(threading.Thread(target=fill, args=(result,), daemon=True))
            threads[-1].start()
    for result in results:
        if result.trouble is None:
            fill(result)
    for thread in threads:
        thread.join(_PATIENCE)
    return results

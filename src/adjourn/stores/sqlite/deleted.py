"""Finds and removes what the user's state directory keeps of stores that were deleted."""

import os
from contextlib import suppress
from enum import Enum

import msgspec

from adjourn.stores.sqlite.binding import Kept, read_kept
from adjourn.system.files import sync_directory


class StoreFate(Enum):
    """What happened to the directory of a store, as far as it can be seen."""

    THERE = "it is there"
    DELETED = "it was deleted, or moved and not used since"
    REPLACED = "another directory is in its place"
    UNKNOWN = "its disk may not be mounted"


class KnownStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store that the state directory knows of."""

    path: str
    entry: str  # the directory with its secret and its mark
    fate: StoreFate


def known_stores(state: str) -> list[KnownStore]:
    """Return all stores that a state directory knows of, by their paths."""
    place = os.path.join(state, "stores")
    try:
        entries = [os.path.join(place, name) for name in os.listdir(place)]
    except FileNotFoundError:
        return []
    found = [(entry, kept) for entry in entries if (kept := read_kept(entry))]
    stores = [KnownStore(path=kept.path, entry=entry, fate=_fate_of(kept)) for entry, kept in found]
    return sorted(stores, key=lambda store: store.path)


def _fate_of(kept: Kept) -> StoreFate:
    """Return what happened to a store.

    Only what lies on the same disk as the store can show that it is gone.

    A disk that is not mounted leaves an empty directory of another device, or none. So does a
    container that has the user's home directory and nothing else of the machine.
    """
    with suppress(OSError):
        here = os.stat(kept.path)
        if here.st_ino == kept.inode:
            return StoreFate.THERE
        return StoreFate.REPLACED if here.st_dev == kept.device else StoreFate.UNKNOWN
    above = os.path.dirname(kept.path)
    while above != os.path.dirname(above) and not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        return StoreFate.DELETED if os.stat(above).st_dev == kept.device else StoreFate.UNKNOWN
    except OSError:
        return StoreFate.UNKNOWN


def forget(store: KnownStore) -> None:
    """Remove what is kept of a store; a directory that turns up again later has to be adopted."""
    for name in ("key.json", "seen"):  # the secret first: without it the rest is worth nothing
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(store.entry, name))
    with suppress(OSError):  # somebody else keeps something there
        os.rmdir(store.entry)
    sync_directory(os.path.dirname(store.entry))

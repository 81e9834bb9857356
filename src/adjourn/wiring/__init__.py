"""Puts the parts together; the only package that knows them all. What every verb needs is here, the rest one file each."""

import os
import time

from adjourn.controller.desk import Desk
from adjourn.core.call import Command
from adjourn.core.surroundings import Surroundings
from adjourn.process.supervisors import About, LocalSupervisors, has_worker, living
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring.authority import FileAuthoriser

__all__ = ["About", "find_root", "has_responses", "has_worker", "living", "new_id", "now", "open_desk", "open_store"]

STORE = ".adjourn"
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return 128 random bits as 26 characters that are easy to type and never begin with a dash."""
    bits = int.from_bytes(os.urandom(16), "big") << 2
    return "".join(_LETTERS[bits >> shift & 31] for shift in range(125, -1, -5))


def find_root(given: str | None, *, start: str | None = None) -> str:
    """Return the store's directory: the one given, the nearest upwards from here or a start, or where a new one belongs."""
    if given:
        return os.path.abspath(given)
    here = start or os.getcwd()
    above = _upwards(here)
    found = next((place for place in above if os.path.lexists(os.path.join(place, STORE))), None)
    repository = next((place for place in above if os.path.lexists(os.path.join(place, ".git"))), None)
    return os.path.join(found or repository or here, STORE)


def _upwards(place: str) -> list[str]:
    places = [place]
    while (parent := os.path.dirname(places[-1])) != places[-1]:
        places.append(parent)
    return places


def open_store(root: str) -> SqliteStore:
    """Open the store, for whoever decides and for whoever runs."""
    return SqliteStore(root)


def open_desk(root: str) -> Desk:
    """Open the store and return what takes decisions; it starts no run and settles none."""
    return Desk(
        open_store(root),
        clock=now,
        new_id=new_id,
        supervisors=LocalSupervisors(root),
        look=_look,
        authoriser=FileAuthoriser(root),
    )


def _look(command: Command) -> Surroundings:
    """Look at what a command depends on. Seldom: most are approved as they were shown."""
    from adjourn.wiring.judging import observe

    return observe(command)


def has_responses(root: str) -> bool:
    """Say whether a response file may lie in the store; nothing is read for it."""
    try:
        return any(name.endswith(".response.yaml") for name in os.listdir(os.path.join(root, "clarifications")))
    except OSError:
        return False

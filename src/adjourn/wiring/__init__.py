"""Puts the parts together; the only module that knows them all."""

import os
import time

from adjourn.controller import Controller
from adjourn.core.clarification import Left
from adjourn.core.errors import Misuse
from adjourn.ports import Gate, Runner
from adjourn.process.local import LocalProcesses
from adjourn.process.supervisors import About, has_worker, living
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring.authority import FileAuthoriser, FileSignatures

__all__ = [
    "About",
    "Controller",
    "back_up",
    "find_root",
    "find_runner",
    "has_worker",
    "living",
    "new_id",
    "now",
    "open_controller",
]

STORE = ".adjourn"
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return 128 random bits as 26 characters that are easy to type and never begin with a dash."""
    bits = int.from_bytes(os.urandom(16), "big") << 2
    return "".join(_LETTERS[bits >> shift & 31] for shift in range(125, -1, -5))


def find_root(given: str | None) -> str:
    """Return the store's directory: the one given, the nearest upwards, or where a new one belongs."""
    if given:
        return os.path.abspath(given)
    here = os.getcwd()
    above = _upwards(here)
    found = next((place for place in above if os.path.lexists(os.path.join(place, STORE))), None)
    repository = next((place for place in above if os.path.lexists(os.path.join(place, ".git"))), None)
    return os.path.join(found or repository or here, STORE)


def _upwards(place: str) -> list[str]:
    places = [place]
    while (parent := os.path.dirname(places[-1])) != places[-1]:
        places.append(parent)
    return places


def open_controller(root: str) -> Controller:
    """Open the store and return what applies the rules. Whoever opens it first settles what dead supervisors left."""
    return Controller(
        SqliteStore(root),
        clock=now,
        new_id=new_id,
        find_runner=find_runner,
        processes=LocalProcesses(root, left_by=_left_by),
        open_gate=lambda: _gate(root),
        authoriser=FileAuthoriser(root),
        signatures=FileSignatures(root),
    )


def _gate(root: str) -> Gate:
    """Make what judges commands. Seldom: most who open a store only decide."""
    from adjourn.wiring.judging import open_gate

    return open_gate(root)


def _left_by(root: str, task_id: str) -> Left | None:
    """Return what a process asked by files. Seldom: most write none."""
    if not os.path.lexists(os.path.join(root, "checkpoints", f"{task_id}.checkpoint.json")):
        return None
    from adjourn.clarifications.files import left_by

    return left_by(root, task_id)


def has_responses(root: str) -> bool:
    """Say whether a response file may lie in the store; nothing is read for it."""
    try:
        return any(name.endswith(".response.yaml") for name in os.listdir(os.path.join(root, "clarifications")))
    except OSError:
        return False


def find_runner(name: str) -> Runner:
    """Return the runner of that name."""
    if name == "command":
        from adjourn.runners.command import CommandRunner

        return CommandRunner()
    raise Misuse(f"no runner {name}", way_out="adjourn run --help")


def back_up(controller: Controller, target: str) -> None:
    """Copy the store into a new file."""
    store = controller.store
    if isinstance(store, SqliteStore):
        store.back_up(target)

"""Puts the parts together; the only module that knows them all."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager

from adjourn.controller import Controller
from adjourn.core.clarification import Left
from adjourn.core.errors import Misuse, StoreProblem
from adjourn.ports import Gate, Runner
from adjourn.process import supervisors
from adjourn.process.local import LocalProcesses, SharedProcesses
from adjourn.process.supervisors import About
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring.authority import FileAuthoriser, FileSignatures

__all__ = [
    "About",
    "Controller",
    "back_up",
    "find_root",
    "find_runner",
    "has_worker",
    "is_shared",
    "living",
    "new_id",
    "now",
    "open_controller",
]

STORE = ".adjourn"
_SHARED = ("postgresql://", "postgres://")
ADDRESS = "database.json"  # in the place of files of a store that machines share
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return 128 random bits as 26 characters that are easy to type and never begin with a dash."""
    bits = int.from_bytes(os.urandom(16), "big") << 2
    return "".join(_LETTERS[bits >> shift & 31] for shift in range(125, -1, -5))


def find_root(given: str | None) -> str:
    """Return the store's directory: the one given, the nearest upwards, or where a new one belongs.

    Of a store that machines share, it is the place of its files on this machine.
    """
    if given and given.startswith(_SHARED):
        with _postgres_is_there():
            from adjourn.wiring.shared import place_for
        return place_for(given)
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


def is_shared(root: str) -> bool:
    """Say whether the store is a database that machines share."""
    return os.path.lexists(os.path.join(root, ADDRESS))


@contextmanager
def _postgres_is_there() -> Generator[None, None, None]:
    try:
        yield
    except ImportError as error:
        raise StoreProblem(
            f"PostgreSQL needs what is not installed: {error.name}", way_out="pip install 'adjourn[postgres]'"
        ) from error


def _open_shared_controller(root: str) -> Controller:
    with _postgres_is_there():
        from adjourn.wiring.shared import open_shared
    store = open_shared(root)
    return Controller(
        store,
        clock=store.now,
        new_id=new_id,
        find_runner=find_runner,
        processes=SharedProcesses(root, left_by=_left_by),
        open_gate=lambda: _gate(find_root(None)),  # the project's policy lies in the project
        authoriser=FileAuthoriser(root),
        signatures=FileSignatures(root),
    )


def living(root: str) -> dict[str, About]:
    """Return the supervisors that are alive, on all machines, and what each says of itself."""
    if is_shared(root):
        from adjourn.wiring.shared import living_everywhere

        return living_everywhere(root)
    return supervisors.living(root)


def has_worker(root: str, pool: str) -> bool:
    """Say whether a worker of that pool is alive."""
    return any(about.pool == pool for about in living(root).values())


def open_controller(root: str) -> Controller:
    """Open the store and return what applies the rules. Whoever opens it first settles what dead supervisors left."""
    if is_shared(root):
        return _open_shared_controller(root)
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
    """Copy the store into a new file, which is a store of one machine."""
    store = controller.store
    if isinstance(store, SqliteStore):
        store.back_up(target)
        return
    from adjourn.wiring.migration import back_up_shared

    back_up_shared(store, target)

"""Takes a store for this machine and user.

One that is a copy, or one that lacks what was acknowledged here.
"""

import os
import time
from collections import Counter

import msgspec

from adjourn.controller.restored import Doubts, doubt_unfinished
from adjourn.controller.transaction import Transaction
from adjourn.core.ask import Principal
from adjourn.core.call import Call
from adjourn.core.errors import Conflict, NotAllowed, NotFound, StoreNotBound, StoreRefused
from adjourn.core.states import UNFINISHED, CallState
from adjourn.core.task import Run
from adjourn.core.text.render import command_line
from adjourn.ports.world import StillRuns
from adjourn.process.ancestry import enclosing_run
from adjourn.process.processes import LocalProcesses, marks_of
from adjourn.stores.sqlite.binding import Identity, identity_in
from adjourn.stores.sqlite.deleted import KnownStore, StoreFate, forget, known_stores
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.system.files import run_directory
from adjourn.system.machine import new_id, now, state_directory
from adjourn.wiring import is_shared, living, open_sqlite, open_store, postgres_is_there
from adjourn.wiring.all_stores import registered_stores
from adjourn.wiring.authority import has_runs, require_outside, require_outside_here

TYPE_CHECKING = False

if TYPE_CHECKING:  # a store of one machine does without
    from adjourn.stores.postgres.store import PostgresStore

_BETWEEN_LOOKS = 0.2  # seconds
_LET_THROUGH = (CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING)


class StoreContents(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds, shown before somebody takes it."""

    root: str
    identity: Identity | None
    tasks: dict[str, int]  # by state
    approved: tuple[Call, ...]  # or running: what the store says was let through and has not ended
    open_asks: int
    events: int
    is_ours: bool
    # How many events this machine has seen, if the store lacks one; 0 if nobody knows
    missing: int | None
    why: str  # why it cannot be used as it is; empty if it can


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the tasks of a store that was taken."""

    contents: StoreContents
    doubts: Doubts


def read_contents(root: str) -> StoreContents:
    """Return what a store holds; nothing is changed."""
    store = open_store(root)
    try:
        return _contents(store, root)
    finally:
        store.close()


def _open_shared(root: str) -> "PostgresStore":
    with postgres_is_there():
        # Only shared stores need it: its packages are optional
        from adjourn.wiring.shared import open_shared

        return open_shared(root)


def _contents(store: "SqliteStore | PostgresStore", root: str) -> StoreContents:
    why, is_ours, missing = "", True, None
    try:
        store.require_ours()
    except StoreNotBound as error:
        why, is_ours = error.sentence, False
    except StoreRefused as error:
        mark = store.missing()
        why, missing = error.sentence, mark.place if mark else 0
    with store.read() as view:
        everything = view.tasks(limit=-1)
        unfinished = [task for task in everything if task.state in UNFINISHED]
        calls = [
            call
            for task in unfinished
            for state in _LET_THROUGH
            for call in view.calls_in(task.id, state)
        ]
        return StoreContents(
            root=root,
            identity=identity_in(view),
            tasks=dict(Counter(str(task.state) for task in everything)),
            approved=tuple(calls),
            open_asks=view.count_open_asks(),
            events=view.trail_head()[0],
            is_ours=is_ours,
            missing=missing,
            why=why,
        )


def take(root: str, *, adopts: bool) -> Taken:
    """Make a store that is refused one of ours as it is.

    What may have run elsewhere, or since, becomes a question.
    """
    if living(root):
        raise Conflict(
            f"somebody works on {root}",
            way_out=command_line(["adjourn", "worker", "--status", "--store", root]),
        )
    store = open_sqlite(root)
    try:
        contents = _contents(store, root)
        with store.read() as view:
            _require_rest(root, view.current_runs())
        with store.taking_over(adopts=adopts) as tx:
            doubts = doubt_unfinished(Transaction(tx, now=now(), new_id=new_id))
        return Taken(contents=contents, doubts=doubts)
    finally:
        store.close()


def accept_shared(root: str) -> Taken:
    """Have a database that lacks what this machine has seen count as it is, on all machines.

    Whatever is approved, claimed or running in it may have run on any of them: it becomes
    uncertain. What this machine started in tasks that have not ended is written down for all
    machines.
    """
    store = _open_shared(root)
    try:
        contents = _contents(store, root)
        ended = _wait_for_leases(store, root)
        with store.accepting(new_id()) as tx:
            doubts = doubt_unfinished(Transaction(tx, now=store.now(), new_id=new_id), ended=ended)
            unfinished = {task.id for task in tx.tasks(states=UNFINISHED, limit=-1)}
            store.keep_starts(tx, marks_of(root, unfinished))
        return Taken(contents=contents, doubts=doubts)
    finally:
        store.close()


def _wait_for_leases(store: "PostgresStore", root: str) -> set[str]:
    """Wait until no supervisor holds a run; return the runs that ended on this machine.

    A supervisor that finds that it works on an older copy renews a run's lease until it has ended.
    """
    deadline = time.monotonic() + store.lease + 1
    while True:
        with store.read() as view:
            running = view.current_runs()
            abandoned = {run.id for run in view.abandoned()}
        ended = {run.id for run in running if _has_ended_here(root, run)}
        held = [run for run in running if run.id not in abandoned | ended]
        if not held:
            return ended
        if time.monotonic() > deadline:
            raise Conflict(
                f"run {held[0].id} is still running: its supervisor renews its lease. "
                "Wait until it has ended, or stop its worker",
                way_out=command_line(["adjourn", "worker", "--status", "--store", root]),
            )
        time.sleep(_BETWEEN_LOOKS)


def _has_ended_here(root: str, run: Run) -> bool:
    """Say whether a run was started on this machine, and none of it is left."""
    if run.shim is None or not os.path.isdir(run_directory(root, run.id)):
        return False
    return not isinstance(LocalProcesses(root).shim_state(run.id, run.shim), StillRuns)


def _require_rest(root: str, running: list[Run]) -> None:
    """Refuse while a process of a run is alive whose supervisor is gone."""
    processes = LocalProcesses(root)
    for run in running:
        if run.shim and isinstance(processes.shim_state(run.id, run.shim), StillRuns):
            way_out = command_line(["adjourn", "wait", run.task_id, "--store", root])
            raise Conflict(f"run {run.id} is still running", way_out=way_out)


def require_outside_of_all_runs(verb: str) -> None:
    """Refuse what is, or may be, part of a run of any store of this user.

    A store that is not ours yet, or none, does not know the run that asks; the others do.
    """
    by = Principal(name=f"uid:{os.getuid()}", inside_run=enclosing_run())
    if by.inside_run:
        sentence = f"{verb} is refused inside a run: what runs under adjourn may ask, never decide"
        raise NotAllowed(sentence, way_out="do it from a terminal of your own")
    for root in registered_stores():
        if is_shared(root):
            require_outside_here(root, by, verb)
        elif has_runs(root):
            store = open_sqlite(root)
            try:
                with store.read() as view:
                    require_outside(root, view, by, verb)
            finally:
                store.close()


def unfollowed_address(root: str) -> str | None:
    """Return the database to which an address leads that is not followed, without its password.

    None if it is missing.
    """
    if not is_shared(root):
        return None
    # Only shared stores need it: its packages are optional
    from adjourn.wiring.shared import untrusted_url

    return untrusted_url(root)


def follow_address(root: str) -> None:
    """Follow the address of a directory from now on."""
    # Only shared stores need it: its packages are optional
    from adjourn.wiring.shared import trust_address

    trust_address(root)


def deleted_stores(paths: tuple[str, ...] = ()) -> list[KnownStore]:
    """Return the stores that this user had and that are gone.

    All of them, or those that were in these directories.
    """
    known = known_stores(state_directory(os.environ))
    gone = [store for store in known if store.fate in {StoreFate.DELETED, StoreFate.REPLACED}]
    if not paths:
        return gone
    wanted = [os.path.realpath(path) for path in paths]
    for path in wanted:
        if any(store.path == path for store in gone):
            continue
        kept = next((store for store in known if store.path == path), None)
        if kept is None:
            raise NotFound(f"nothing is kept of a store at {path}", way_out="adjourn store forget")
        if kept.fate is StoreFate.THERE:
            way_out = command_line(["adjourn", "doctor", "--store", path])
            raise Conflict(f"the store {path} is there", way_out=way_out)
        sentence = (
            f"{path} cannot be seen, and {kept.fate.value}. "
            f"If you are sure, remove {kept.entry} yourself"
        )
        raise Conflict(sentence, way_out=command_line(["ls", "-la", kept.entry]))
    return [store for store in gone if store.path in wanted]


def forget_stores(stores: list[KnownStore]) -> None:
    """Remove what this user's state directory keeps of stores that are gone."""
    for store in stores:
        forget(store)

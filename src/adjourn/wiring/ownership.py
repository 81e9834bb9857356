"""Takes a store for this machine and user.

One that is a copy, or one that lacks what was acknowledged here.
"""

from collections import Counter

import msgspec

from adjourn.controller.restored import Doubts, doubt_unfinished
from adjourn.controller.transaction import Transaction
from adjourn.core.call import Call
from adjourn.core.errors import Conflict, StoreNotBound, StoreRefused
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Run
from adjourn.core.text.render import command_line
from adjourn.ports.world import StillRuns
from adjourn.process.processes import LocalProcesses
from adjourn.stores.sqlite.binding import Identity, Mark, identity_in
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring import is_shared, living, new_id, now, open_sqlite

_LET_THROUGH = (CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING)
_UNFINISHED = (TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED)


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds, for whoever is about to take it."""

    root: str
    identity: Identity | None
    tasks: dict[str, int]  # by state
    approved: tuple[Call, ...]  # or running: what the store says was let through and has not ended
    open_asks: int
    events: int
    is_ours: bool
    missing: Mark | None  # the newest event that this machine has seen, if the store lacks it
    why: str  # why it cannot be used as it is; empty if it can


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the tasks of a store that was taken."""

    holding: Holding
    doubts: Doubts


def holding_of(root: str) -> Holding:
    """Return what a store holds; nothing is changed."""
    store = open_sqlite(root)
    try:
        return _holding(store, root)
    finally:
        store.close()


def _holding(store: SqliteStore, root: str) -> Holding:
    why, is_ours, missing = "", True, None
    try:
        store.require_ours()
    except StoreNotBound as error:
        why, is_ours = error.sentence, False
    except StoreRefused as error:
        why, missing = error.sentence, store.missing()
    with store.read() as view:
        everything = view.tasks(limit=-1)
        unfinished = [task for task in everything if task.state in _UNFINISHED]
        calls = [
            call
            for task in unfinished
            for state in _LET_THROUGH
            for call in view.calls_in(task.id, state)
        ]
        return Holding(
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
        holding = _holding(store, root)
        with store.read() as view:
            _require_rest(root, [view.run(task.id, task.runs) for task in view.running()])
        with store.taking_over(adopts=adopts) as tx:
            doubts = doubt_unfinished(Transaction(tx, now=now(), new_id=new_id))
        return Taken(holding=holding, doubts=doubts)
    finally:
        store.close()


def _require_rest(root: str, running: list[Run]) -> None:
    """Refuse while a process of a run is alive whose supervisor is gone."""
    processes = LocalProcesses(root)
    for run in running:
        if run.shim and isinstance(processes.shim_state(run.id, run.shim), StillRuns):
            way_out = command_line(["adjourn", "wait", run.task_id, "--store", root])
            raise Conflict(f"run {run.id} is still running", way_out=way_out)


def unfollowed_address(root: str) -> str | None:
    """Return the database to which an address leads that is not followed, without its password.

    None if there is none.
    """
    if not is_shared(root):
        return None
    from adjourn.wiring.shared import untrusted_url

    return untrusted_url(root)


def follow_address(root: str) -> None:
    """Follow the address of a directory from now on."""
    from adjourn.wiring.shared import trust_address

    trust_address(root)

"""Puts the whole controller together.

What runs commands, and settles what dead supervisors left.
"""

import os

from adjourn.controller.controller import Controller
from adjourn.core.clarification import Left
from adjourn.ports.world import Gate
from adjourn.process.processes import LocalProcesses, SharedProcesses
from adjourn.runners import find_runner
from adjourn.wiring import is_shared, new_id, now, open_sqlite, postgres_is_there
from adjourn.wiring.authority import FileAuthoriser, FileSignatures


def open_controller(root: str, *, as_worker: bool = False, for_asking: bool = False) -> Controller:
    """Open the store and return what applies the rules.

    A part of adjourn inside a run speaks for the worker that runs it.

    Whoever only asks, inside a run, needs not see the user's state directory: it may be hidden by a
    sandbox.
    """
    if is_shared(root):
        return _open_shared_controller(root, as_worker=as_worker)
    return Controller(
        open_sqlite(root, for_asking=for_asking),
        clock=now,
        new_id=new_id,
        find_runner=find_runner,
        processes=LocalProcesses(root, left_by=_left_by),
        open_gate=lambda: _gate(root),
        authoriser=FileAuthoriser(root),
        signatures=FileSignatures(root),
    )


def _open_shared_controller(root: str, *, as_worker: bool) -> Controller:
    with postgres_is_there():
        from adjourn.wiring.shared import DatabaseAuthoriser, open_shared

        store = open_shared(root, as_worker=as_worker)
    return Controller(
        store,
        clock=store.now,
        new_id=new_id,
        find_runner=find_runner,
        processes=SharedProcesses(root, left_by=_left_by, kept_start=store.kept_start),
        open_gate=lambda: _gate(root),
        authoriser=DatabaseAuthoriser(root, store),
        signatures=FileSignatures(root),
    )


def _gate(root: str) -> Gate:
    """Make what judges commands. Seldom: most who open a store only decide."""
    from adjourn.wiring.policies import open_gate

    return open_gate(root)


def _left_by(root: str, task_id: str) -> Left | None:
    """Return what a process asked by files. Seldom: most write none."""
    if not os.path.lexists(os.path.join(root, "checkpoints", f"{task_id}.checkpoint.json")):
        return None
    from adjourn.clarifications.protocol_files import left_by

    return left_by(root, task_id)


def name_of(root: str) -> str:
    """Return what people call a store: its directory, or the database."""
    if not is_shared(root):
        return root
    from adjourn.wiring.shared import named

    return named(root)

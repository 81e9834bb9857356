"""Puts the whole controller together: what runs commands, and settles what dead supervisors left."""

import os

from adjourn.controller.whole import Controller
from adjourn.core.clarification import Left
from adjourn.core.errors import Misuse
from adjourn.ports.runs import Gate, Runner
from adjourn.process.local import LocalProcesses
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring import new_id, now, open_store
from adjourn.wiring.authority import FileAuthoriser, FileSignatures

DRIVERS = ("agent", "claude", "codex")


def open_controller(root: str) -> Controller:
    """Open the store and return what applies the rules. Whoever opens it first settles what dead supervisors left."""
    return Controller(
        open_store(root),
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


def find_runner(name: str) -> Runner:
    """Return the runner of that name."""
    if name == "command":
        from adjourn.runners.command import CommandRunner

        return CommandRunner()
    if name in DRIVERS:
        from adjourn.core.judgement import Effect
        from adjourn.runners.driver import DriverRunner

        # The built-in agent's process changes nothing: whatever has an effect runs beside it.
        is_ours = name == "agent"
        return DriverRunner(effect=Effect.READ_ONLY if is_ours else Effect.UNKNOWN, needs_session=not is_ours)
    raise Misuse(f"no runner {name}", way_out="adjourn run --help")


def back_up(controller: Controller, target: str) -> None:
    """Copy the store into a new file."""
    store = controller.store
    if isinstance(store, SqliteStore):
        store.back_up(target)

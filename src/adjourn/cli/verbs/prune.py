"""adjourn prune: forget ended tasks."""

import os
import shutil

import click

from adjourn.clarifications import protocol_files
from adjourn.cli.options import Amount, verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import Conflict, UnreadableRow
from adjourn.core.states import ENDED
from adjourn.core.task import Task
from adjourn.core.text.render import title
from adjourn.core.text.when import ago
from adjourn.process.supervisors import remove_dead
from adjourn.system.files import run_directory, run_names
from adjourn.system.machine import now
from adjourn.views.block import Table
from adjourn.views.call import GIST, short

_DAY_MS = 86_400_000
_PAGE = 500
_SHOWN = 20  # tasks that a dry run names


@verb("prune")
@click.option(
    "--older-than",
    "days",
    type=Amount(),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Only tasks that ended more than DAYS ago.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
def command(session: Session, *, days: float, dry_run: bool) -> None:
    """Delete tasks that ended some time ago, with their files.

    The digests of their history stay, so that the audit closes.
    """
    session.require_named_store()
    old: list[Task] = []
    locks = 0
    if session.has_store:
        controller = session.open_controller()
        by = session.principal(controller.decisions)
        old = _old(controller, before=controller.now() - int(days * _DAY_MS))
        if not dry_run:
            old = [task for task in old if _forget(controller, session.root, task, by=by)]
            _remove_runs(session.root, {task.id for task in old})
        # The locks that killed supervisors left, but for those whose runs are still to be settled
        with controller.store.read() as view:
            needed = {run.supervisor for run in view.current_runs()}
            is_known = not view.unreadable
        locks = remove_dead(session.root, needed=needed, dry_run=dry_run) if is_known else 0
    if session.wants_json:
        pruned = [task.id for task in old]
        session.print_document(
            {"schema_version": 1, "pruned": pruned, "locks_removed": locks, "dry_run": dry_run}
        )
        return
    noun = "task" if len(old) == 1 else "tasks"
    session.print(f"{'Would forget' if dry_run else 'Forgot'} {len(old)} {noun}.")
    if dry_run and old:
        shown: list[tuple[str, ...]] = []
        for task in old[:_SHOWN]:
            ended, what = ago(task.updated_at, now=now()), title(task.spec, columns=GIST)
            shown.append((short(task.id), task.state, ended, what))
        session.show([Table(head=("TASK", "STATE", "ENDED", "WHAT"), rows=shown, state_column=1)])
        if len(old) > _SHOWN:
            session.print(f"… and {len(old) - _SHOWN:,} more")
    if locks:
        noun = "lock of a dead supervisor" if locks == 1 else "locks of dead supervisors"
        session.print(f"{'Would remove' if dry_run else 'Removed'} {locks} {noun}.")


def _forget(controller: Controller, root: str, task: Task, *, by: Principal) -> bool:
    try:
        controller.tasks.forget(task.id, by=by)
    except Conflict:
        return False  # the task that started it still needs it
    except UnreadableRow as error:
        error.note_in(controller.store.unreadable)
        return False
    _remove_files(root, task)
    return True


def _old(controller: Controller, *, before: int) -> list[Task]:
    found: list[Task] = []
    start: str | None = None
    while True:
        with controller.store.read() as view:
            page = view.tasks(states=tuple(ENDED), limit=_PAGE, before=start)
        found += [task for task in page if task.updated_at <= before]
        if len(page) < _PAGE:
            return found
        start = page[-1].id


def _remove_runs(root: str, task_ids: set[str]) -> None:
    """Remove the files of runs and of calls beside them, and the marks of their starts.

    One look for all tasks.
    """
    # Most commands start without it (bench start)
    from adjourn.process.processes import remove_marks

    if not task_ids:
        return
    for name in run_names(root):
        if name.partition(".")[0] in task_ids:
            shutil.rmtree(run_directory(root, name), ignore_errors=True)
    remove_marks(root, task_ids)


def _remove_files(root: str, task: Task) -> None:
    session = os.path.join(root, "session")
    shutil.rmtree(os.path.join(session, task.id), ignore_errors=True)
    if _is_about(os.path.join(session, "pause.json"), task):
        os.unlink(os.path.join(session, "pause.json"))
    protocol_files.remove_all(root, task.id)


def _is_about(manifest: str, task: Task) -> bool:
    try:
        with open(manifest, "rb") as file:
            return task.id.encode() in file.read()
    except OSError:
        return False

"""Runs a task in the foreground until it has ended or the person there leaves it open."""

import sys
from collections.abc import Iterable

from adjourn.cli.foreground import report, run_to_the_end, supervising
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush
from adjourn.cli.verbs._workspace import require_own_repository
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.errors import Conflict
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.supervision.supervisor import Supervisor
from adjourn.supervision.workspace_notes import require_workspace


def run_until_settled(
    session: Session, controller: Controller, supervisor: Supervisor, task: Task
) -> int:
    """Run a task and print how it stands; a person at this terminal may settle its asks at once.

    Then it goes on, as often as that happens. Return the exit code for how it stands in the end.
    """
    while True:
        code = report(session, controller, run_to_the_end(session, supervisor, task))
        if code != exits.PAUSED or not _is_settled_here(session, controller, task):
            return code
        by = session.principal(controller.decisions)
        task = controller.tasks.resume(task.id, by=by, supervisor=supervisor.name)


def _is_settled_here(session: Session, controller: Controller, task: Task) -> bool:
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    # Only at a terminal, and only if it paused
    from adjourn.cli.verbs._settling import can_settle_here, settle_task_here

    if not can_settle_here(session, session.principal(controller.decisions)):
        return False
    flush()
    return settle_task_here(session, controller, task)


def resume_tasks(session: Session, task_ids: Iterable[str]) -> int:
    """Go on with each task in turn; exit 10 if any needs a person, else 1 if any failed.

    One that a worker has taken, or that still asks something, is printed as it stands.
    """
    codes: list[int] = []
    flush()  # the decision is printed before the task's own output, also to a pipe
    with supervising(session) as (controller, supervisor):
        for task_id in task_ids:
            with controller.store.read() as view:
                task = view.task(task_id)
            claimed = _claimed(session, controller, supervisor, task)
            codes.append(
                run_until_settled(session, controller, supervisor, claimed)
                if claimed
                else report(session, controller, task)
            )
    return next((code for code in (exits.PAUSED, exits.FAILED) if code in codes), exits.COMPLETED)


def _claimed(
    session: Session, controller: Controller, supervisor: Supervisor, task: Task
) -> Task | None:
    if task.state is not TaskState.QUEUED:
        return None
    if task.spec.is_driven:
        from adjourn.wiring.runners import require_resumable  # seldom needed

        require_resumable(controller, task)
    require_workspace(controller, task)
    require_own_repository(session, task, verb="resume", named=None)
    by = session.principal(controller.decisions)
    try:
        return controller.tasks.resume(task.id, by=by, supervisor=supervisor.name)
    except Conflict:  # a worker was faster
        return None

"""adjourn restart: run a task again from nothing."""

import os

import click

from adjourn.cli.foreground import report, run_detached, run_to_the_end, supervising
from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._workspace import require_own_repository
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH
from adjourn.core.errors import Misuse
from adjourn.core.task import Task
from adjourn.core.text.render import visible


@verb("restart")
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.option(
    "--detach", is_flag=True, help="Return at once; a copy of this command supervises the task."
)
@click.option("--workspace", metavar="PATH", help="Where it runs, if that is not around here.")
def command(session: Session, *, task: str, detach: bool, workspace: str | None) -> int:
    """Run a task again from nothing: a new run and a new session.

    Its history stays; its answers are asked for again.
    """
    session.require_store()
    if detach:
        return run_detached(
            session, lambda controller: _queued(session, controller, task, workspace)
        )
    with supervising(session) as (controller, supervisor):
        found = _queued(session, controller, task, workspace, supervisor=supervisor.name)
        return report(session, controller, run_to_the_end(session, supervisor, found))


def _queued(
    session: Session,
    controller: Controller,
    text: str,
    named: str | None,
    *,
    supervisor: str | None = None,
) -> Task:
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    workspace = task.spec.workspace
    if os.path.isdir(workspace):
        require_own_repository(session, task, verb="restart", named=named)
    else:  # it begins elsewhere
        workspace = os.path.realpath(named) if named is not None else os.getcwd()
        if not os.path.isdir(workspace):
            raise Misuse(
                f"{visible(workspace)} is not a directory", way_out=f"adjourn restart {task.id}"
            )
    by = session.principal(controller.decisions)
    return controller.tasks.restart(task.id, by=by, workspace=workspace, supervisor=supervisor)

"""adjourn restart: run a task again from nothing."""

import os

import click

from adjourn.cli.foreground import report, run_detached, run_to_the_end, supervising
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH
from adjourn.core.task import Task


@verb("restart")
@click.argument("task", metavar="ID")
@click.option(
    "--detach", is_flag=True, help="Return at once; a copy of this command supervises the task."
)
def command(session: Session, *, task: str, detach: bool) -> int:
    """Run a task again from nothing: a new run and a new session.

    Its history stays; its answers are asked for again.
    """
    session.require_store()
    if detach:
        return run_detached(session, lambda controller: _queued(session, controller, task))
    with supervising(session) as (controller, supervisor):
        found = _queued(session, controller, task, supervisor=supervisor.name)
        return report(session, controller, run_to_the_end(session, supervisor, found))


def _queued(
    session: Session, controller: Controller, text: str, *, supervisor: str | None = None
) -> Task:
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    stays = os.path.isdir(task.spec.workspace)
    workspace = task.spec.workspace if stays else os.getcwd()
    by = session.principal(controller.decisions)
    return controller.tasks.restart(task.id, by=by, workspace=workspace, supervisor=supervisor)

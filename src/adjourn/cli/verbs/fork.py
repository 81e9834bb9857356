"""adjourn fork: try another way from an earlier checkpoint."""

import click

from adjourn.cli.foreground import report, run_detached, run_to_the_end, supervising
from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH
from adjourn.core.task import Task
from adjourn.supervision.workspace_notes import require_workspace


@verb("fork")
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.argument("text", required=False)
@click.option("--at", metavar="CHECKPOINT", help="Where to begin (default: where the task is now).")
@click.option(
    "--detach", is_flag=True, help="Return at once; a copy of this command supervises the task."
)
def command(session: Session, *, task: str, text: str | None, at: str | None, detach: bool) -> int:
    """Start a new task of the built-in agent with the conversation of ID as it was at CHECKPOINT.

    ID stays as it is. Files do not change back: the new task works in the same directory. Calls
    that waited for approval at that checkpoint are asked for again. TEXT is your next message.
    """
    session.require_store()
    if detach:
        return run_detached(
            session, lambda controller: _forked(session, controller, task, at, text)
        )
    with supervising(session) as (controller, supervisor):
        forked = _forked(session, controller, task, at, text, supervisor=supervisor.name)
        return report(session, controller, run_to_the_end(session, supervisor, forked))


def _forked(
    session: Session,
    controller: Controller,
    text: str,
    at: str | None,
    said: str | None,
    *,
    supervisor: str | None = None,
) -> Task:
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    require_workspace(controller, task)
    return controller.tasks.fork(
        task.id,
        at=at,
        text=said,
        by=session.principal(controller.decisions),
        supervisor=supervisor,
    )

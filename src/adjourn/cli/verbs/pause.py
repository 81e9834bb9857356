"""adjourn pause: interrupt a running task."""

import click

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._stop import stop
from adjourn.controller.decisions import ENOUGH


@verb("pause")
@click.argument("task", type=TASK_NAME, metavar="ID")
def command(session: Session, *, task: str) -> int:
    """Interrupt a running task and wait until its process has left. It can be resumed."""
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    found = controller.decisions.find_task(task, shortest=ENOUGH)
    return stop(session, controller, controller.tasks.pause(found.id, by=by))

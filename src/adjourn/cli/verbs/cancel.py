"""adjourn cancel: end a task."""

import click

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._stop import stop
from adjourn.controller.decisions import ENOUGH


@verb("cancel")
@click.argument("task", type=TASK_NAME, metavar="ID")
def command(session: Session, *, task: str) -> int:
    """End a task and wait until its process, if it has one, has left.

    Its open asks are withdrawn. Of a task whose stored bytes are damaged only the history stays.
    """
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    found = controller.decisions.find_task_id(task, shortest=ENOUGH)
    return stop(session, controller, controller.tasks.cancel(found, by=by))

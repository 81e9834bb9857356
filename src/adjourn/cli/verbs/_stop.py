"""Sees a stop through: by the task's supervisor, or by its shim if the supervisor is gone."""

from adjourn.cli.foreground import report
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.supervision.wait import interrupt_orphan, wait_until


def stop(session: Session, controller: Controller, task: Task) -> int:
    """Wait until a task that was told to stop has stopped, and print how it stands."""
    if task.state is TaskState.RUNNING:
        interrupt_orphan(controller, task, root=session.root)
        task = wait_until(
            controller,
            task.id,
            lambda found: found.state is not TaskState.RUNNING,
            look=lambda: session.settle(controller),
        )
    report(session, controller, task)
    return exits.COMPLETED

"""Sees a stop through: the task's supervisor is told, or its shim where there is no supervisor any more."""

from adjourn.cli.foreground import report
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.supervision.wait import interrupt_orphan, wait_until


def _has_stopped(task: Task) -> bool:
    return task.state is not TaskState.RUNNING


def stop(session: Session, task: Task) -> int:
    """Wait until a task that was told to stop has stopped, and say how it stands."""
    controller = session.controller
    if task.state is TaskState.RUNNING:
        interrupt_orphan(controller, task, root=session.root)
        task = wait_until(
            controller, task.id, _has_stopped, look=lambda: session.settle(controller)
        )
    report(session, controller, task)
    return exits.COMPLETED

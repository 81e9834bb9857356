"""adjourn wait: wait until tasks have ended or need a person."""

import time

import click

from adjourn.cli.foreground import EXIT_CODES, standing
from adjourn.cli.options import TASK_NAME, Amount, verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.supervision.wait import wait_until
from adjourn.views.block import BLANK

_MOMENT = 2.0  # seconds that a detached supervisor may need to take its task
_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})


@verb("wait")
@click.argument("tasks", nargs=-1, required=True, type=TASK_NAME, metavar="ID...")
@click.option(
    "--timeout", type=Amount(), metavar="SECONDS", help="Give up after so long, with exit code 1."
)
def command(session: Session, *, tasks: tuple[str, ...], timeout: float | None) -> int:
    """Wait until every task has ended or needs a person.

    Exit 10 if any needs one, else 1 if any failed, else 0.
    """
    controller = session.open_controller()
    deadline = None if timeout is None else time.monotonic() + timeout
    found = [controller.decisions.find_task(text) for text in tasks]
    ended = [_wait_for_end(session, controller, task, deadline) for task in found]
    scenes = [controller.scene(task.id) for task in ended]
    # Its supervisor may not have come to that yet
    documents = [session.write_manifest(scene) for scene in scenes]
    if session.wants_json:
        session.print_document(
            documents[0] if len(documents) == 1 else {"schema_version": 1, "tasks": documents}
        )
    else:
        for number, scene in enumerate(scenes):
            blocks = standing(session, scene, now=controller.now())
            session.show([BLANK, *blocks] if number else blocks)
    codes = [EXIT_CODES[task.state] for task in ended]
    return next((code for code in (exits.PAUSED, exits.FAILED) if code in codes), exits.COMPLETED)


def _wait_for_end(
    session: Session, controller: Controller, task: Task, deadline: float | None
) -> Task:
    timeout = None if deadline is None else max(0.0, deadline - time.monotonic())

    def look() -> None:
        session.settle(controller)

    if not session.wants_json and timeout is None:
        task = wait_until(controller, task.id, _has_begun, look=look, timeout=_MOMENT)
        if task.state is TaskState.QUEUED:
            start = session.commands("resume", task.id)
            session.warn(
                f"adjourn: task {task.id} is queued, and nobody has taken it; it starts with:"
                f" {start}"
            )
    ended = wait_until(controller, task.id, _is_settled, look=look, timeout=timeout)
    if not _is_settled(ended):
        raise AdjournError(
            f"task {task.id} is still {ended.state}", way_out=f"adjourn wait {task.id}"
        )
    return ended


def _has_begun(task: Task) -> bool:
    return task.state is not TaskState.QUEUED


def _is_settled(task: Task) -> bool:
    return task.state not in _UNDER_WAY

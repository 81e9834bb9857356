"""adjourn wait: wait until tasks have ended or need a person."""

import time

import click

from adjourn.cli.foreground import EXIT_CODES, standing
from adjourn.cli.options import TASK_NAME, Amount, verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.errors import AdjournError
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Task
from adjourn.process.ancestry import parent_run_in
from adjourn.supervision.wait import is_settled, wait_until
from adjourn.views.block import BLANK

_MOMENT = 2.0  # seconds that a detached supervisor may need to take its task


@verb("wait")
@click.argument("tasks", nargs=-1, required=True, type=TASK_NAME, metavar="ID...")
@click.option(
    "--timeout",
    type=Amount(),
    metavar="SECONDS",
    help="Stop waiting after this time, with exit code 1.",
)
def command(session: Session, *, tasks: tuple[str, ...], timeout: float | None) -> int:
    """Wait until every task has ended or needs a person.

    A task that waits for tasks which it started needs a person once one of them does.

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
        session.print_document({"schema_version": 1, "tasks": documents})
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

    def is_done(found: Task) -> bool:
        with controller.store.read() as view:
            return is_settled(view, found)

    # A wait without a limit warns, once, that nobody has taken a queued task
    is_warned = session.wants_json or deadline is not None
    while not is_warned:
        found = wait_until(
            controller, task.id, lambda found: is_done(found) or not _has_begun(found), look=look
        )
        if is_done(found):
            break
        found = wait_until(controller, task.id, _has_begun, look=look, timeout=_MOMENT)
        if not _has_begun(found):
            start = session.commands("resume", task.id)
            session.warn(
                f"adjourn: task {task.id} is queued, and nobody has taken it; it starts with:"
                f" {start}"
            )
            is_warned = True
    found = wait_until(controller, task.id, is_done, look=look, timeout=timeout)
    if not is_done(found):
        raise AdjournError(
            f"task {task.id} is still {found.state}", way_out=f"adjourn wait {task.id}"
        )
    if (outer := parent_run_in(session.root)) and found.state in ENDED:
        controller.tasks.close_left(outer, found)
    return found


def _has_begun(task: Task) -> bool:
    return task.state is not TaskState.QUEUED

"""Leaves a task to a copy of this command in a session of its own."""

import os
from collections.abc import Callable

from adjourn.cli.foreground import naming, report
from adjourn.cli.program import command
from adjourn.cli.session import Session
from adjourn.controller.whole import Controller
from adjourn.core import exits
from adjourn.core.errors import AdjournError, Misuse
from adjourn.core.manifest import manifest_of
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.wiring import has_worker
from adjourn.wiring.controller import open_controller
from adjourn.wiring.supervision import open_supervisor


def detached(session: Session, queue: Callable[[Controller], Task]) -> int:
    """Queue a task, leave it to a supervisor of its own, and return at once."""
    if os.environ.get("ADJOURN_RUN_ID"):
        raise Misuse("--detach is refused inside a run: nothing of a run outlives it", way_out="adjourn run -- COMMAND")
    controller = open_controller(session.root)
    session.settle(controller)
    task = queue(controller)
    with naming(session, task):
        scene = controller.scene(task.id)
        controller.store.close()
        if task.state is TaskState.QUEUED and not has_worker(session.root, task.spec.pool):
            _leave_to_a_copy(session, task)
    if session.wants_json:
        session.document(manifest_of(scene, hint=command(session, "wait", task.id)))
    else:
        session.say(task.id)
    return exits.COMPLETED


def _leave_to_a_copy(session: Session, task: Task) -> None:
    """Fork twice, so that the copy belongs to nobody; the first child has left when this returns."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _supervise(session, task)
    finally:
        os._exit(0)


def _supervise(session: Session, task: Task) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    session.wants_json = True
    controller, supervisor = open_supervisor(session.root)
    try:
        report(session, controller, supervisor.run(task))
    except AdjournError:
        return  # what happened is in the store; nobody listens here
    finally:
        supervisor.close()

"""Runs a task in the foreground: shows its output while it works, and how it stands when its process has left."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from adjourn.cli.program import command
from adjourn.cli.projection import project
from adjourn.cli.screen import Screen
from adjourn.cli.session import Session
from adjourn.cli.standing import standing
from adjourn.controller.whole import Controller
from adjourn.core import exits
from adjourn.core.errors import StoreLost, StoreProblem, StoreRefused
from adjourn.core.render import prose
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import Run, Task
from adjourn.core.when import span
from adjourn.stops import deferred_signals
from adjourn.supervise import Supervisor
from adjourn.traces import note_left
from adjourn.wiring.supervision import open_supervisor
from adjourn.wiring.user_files import has_config

EXIT_CODES = {
    TaskState.QUEUED: exits.FAILED,
    TaskState.RUNNING: exits.FAILED,
    TaskState.WAITING: exits.PAUSED,
    TaskState.PAUSED: exits.PAUSED,
    TaskState.SUCCEEDED: exits.COMPLETED,
    TaskState.FAILED: exits.FAILED,
    TaskState.CANCELED: exits.FAILED,
}


def require_redaction(session: Session) -> None:
    """Refuse to start anything whose copies could not be kept clean: where there is no config, there is nothing to check."""
    if has_config():
        session.redactor  # noqa: B018 -- it is kept once it was made


@contextmanager
def supervising(session: Session) -> Generator[tuple[Controller, Supervisor], None, None]:
    """Be a supervisor for a while. The fork server is there before the store is opened."""
    require_redaction(session)
    controller, supervisor = open_supervisor(session.root)

    def warn(run: Run, why: str) -> None:
        session.warn(f"adjourn: run {run.id} is held back: {prose(why)}; it goes on once the machine can")

    supervisor.on_shortage = warn
    try:
        session.settle(controller)
        yield controller, supervisor
    finally:
        supervisor.close()


@contextmanager
def naming(session: Session, task: Task) -> Generator[None, None, None]:
    """Name the task where the store goes away meanwhile: whoever says the whole command again would have it run twice."""
    try:
        yield
    except (StoreLost, StoreRefused):
        raise  # it says more
    except StoreProblem as error:
        sentence = f"{error.sentence}; task {task.id} is kept: see how it stands before anything is started again"
        raise StoreLost(sentence, way_out=command(session, "show", task.id)) from error


def run_to_the_end(session: Session, supervisor: Supervisor, task: Task) -> Task:
    """Run a queued task and show what it prints; from then on there is nothing left to interrupt."""
    screen = Screen(session)
    try:
        with naming(session, task), deferred_signals(heeds_later=False) as signals:
            return supervisor.run_heeding(signals, task, watcher=screen.follow if screen.is_wanted else None)
    finally:
        screen.close()


def report(session: Session, controller: Controller, task: Task) -> int:
    """Write the manifest of a pause, say how the task stands, and return the exit code for it."""
    with naming(session, task):
        note_left(controller, task)
        scene = controller.scene(task.id)
    manifest = project(session, scene)
    if session.wants_json:
        session.document(manifest)
    elif sys.stdout.isatty():
        session.say(_closing(session, scene))
    elif scene.task.state is not TaskState.SUCCEEDED:
        session.say(told(session, scene))
    return EXIT_CODES[scene.task.state]


def told(session: Session, scene: Scene) -> str:
    """Say how a task stands: whole to a person, clean where nobody looks, as in the log of a CI job, which others keep."""
    if sys.stdout.isatty():
        return standing(session, scene, now=session.now())
    from adjourn.core.redact import plainly

    return plainly(standing(session, session.redactor.scene(scene), now=session.now()))


def _closing(session: Session, scene: Scene) -> str:
    if scene.task.state is TaskState.SUCCEEDED:
        plan = scene.task.spec.plan
        way_on = f"\nThen: {command(session, 'execute', plan)}" if plan else ""
        return f"Completed in {span(scene.task.updated_at - scene.task.created_at)}  (task {scene.task.id}){way_on}"
    return standing(session, scene, now=session.now())

"""Runs a task in the foreground.

Shows its output while it works, and how it stands when its process has left.
"""

import os
import select
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import msgspec

from adjourn.clarifications.log import SHOW_CALLS
from adjourn.cli.screen import Screen
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly, print_warning
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.errors import (
    AdjournError,
    Conflict,
    Misuse,
    NotStarted,
    StoreLost,
    StoreProblem,
    StoreRefused,
    WorkspaceBusy,
)
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import Run, Task
from adjourn.core.text.render import prose
from adjourn.core.trail.durations import time_spent, time_words
from adjourn.settings.config import has_config
from adjourn.supervision.supervisor import Supervisor
from adjourn.supervision.workspace_notes import note_left
from adjourn.system.poll import deferred_signals
from adjourn.views.block import Block, Span, change_text, lay_out, line
from adjourn.wiring import has_worker
from adjourn.wiring.controller import open_controller
from adjourn.wiring.supervisor import open_supervisor

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
    """Refuse to start anything whose copies could not be kept clean.

    Where there is no config, there is nothing to check.
    """
    if has_config():
        session.open_redactor()


@contextmanager
def supervising(session: Session) -> Generator[tuple[Controller, Supervisor], None, None]:
    """Be a supervisor for a while. The fork server is there before the store is opened."""
    require_redaction(session)
    controller, supervisor = open_supervisor(session.root)

    def warn(run: Run, why: str) -> None:
        said = f"adjourn: run {run.id} is held back: "
        try:
            session.warn(f"{said}{prose(why)}; nothing of it is lost")
        except OSError as error:
            # No descriptor is left to load what takes secrets out of the reason
            print_warning(f"{said}{os.strerror(error.errno or 0)}; nothing of it is lost")

    supervisor.on_shortage = warn
    try:
        session.settle(controller)
        yield controller, supervisor
    finally:
        supervisor.close()


@contextmanager
def naming(session: Session, task: Task) -> Generator[None, None, None]:
    """Name the task where the store goes away meanwhile.

    Running the whole command again would run the work twice.
    """
    try:
        yield
    except (StoreLost, StoreRefused):
        raise  # it says more
    except StoreProblem as error:
        sentence = (
            f"{error.sentence}; task {task.id} is kept: see how it stands before anything is"
            " started again"
        )
        raise StoreLost(sentence, way_out=session.commands("show", task.id)) from error


def run_to_the_end(session: Session, supervisor: Supervisor, task: Task) -> Task:
    """Run a queued task and show what it prints, unless it is not ours to run.

    From then on there is nothing left to interrupt.
    """
    if not supervisor.may_run(task):
        return task
    if task.spec.is_driven and not session.wants_json and sys.stderr.isatty():
        os.environ[SHOW_CALLS] = "1"
    screen = Screen(wants_json=session.wants_json, verbose=session.verbose)
    try:
        with naming(session, task), deferred_signals(restore_handlers=False) as signals:
            watcher = screen.follow if screen.is_wanted else None
            return supervisor.run_with_signals(signals, task, watcher=watcher)
    finally:
        screen.close()


def report(session: Session, controller: Controller, task: Task) -> int:
    """Write the manifest of a pause, print how the task stands, and return the exit code for it."""
    with naming(session, task):
        note_left(controller, task)
        scene = controller.scene(task.id)
    is_plain_success = scene.task.state is TaskState.SUCCEEDED and not scene.unmade_calls
    if not is_plain_success or session.wants_json:
        manifest = session.write_manifest(scene)
        if session.wants_json:
            session.print_document(manifest)
        else:
            session.show(standing(session, scene, now=controller.now()))
    elif sys.stdout.isatty():
        with controller.store.read() as view:
            spent = time_spent(view.events(task.id))
        took = time_words(spent, now=controller.now())
        session.show([line(f"Completed: {took}  (task ", Span(scene.task.id, "id"), ")")])
        if plan := scene.task.spec.plan:
            session.print(f"Then: {session.commands('execute', plan)}")
    return EXIT_CODES[scene.task.state]


def standing(session: Session, scene: Scene, *, now: int) -> Sequence[Block]:
    """Lay out how a task stands.

    Whole for a person, without secrets where nobody looks, as in the log of a CI job, which others
    keep.
    """
    # A command that ends well shows nothing (bench resume)
    from adjourn.core.redact import plainly
    from adjourn.views.task import task_blocks

    cut = session.cut(scene.task.id)
    is_attended = has_worker(session.root, scene.task.spec.pool)
    is_terminal = sys.stdout.isatty()
    shown = scene if is_terminal else session.open_redactor().scene(scene)
    blocks = task_blocks(shown, session.commands, now=now, cut=cut, has_worker=is_attended)
    if is_terminal:
        return blocks
    return change_text(lay_out(blocks, None), plainly)


_LONGEST = 15.0  # seconds until it is left to itself, whether it has begun or not
_KILLED = "the detached supervisor was killed before it began"


class _Failure(msgspec.Struct):
    """Why the copy could not begin."""

    sentence: str
    code: str = NotStarted.code
    exit_code: int = exits.FAILED
    way_out: str = ""


def run_detached(session: Session, queue: Callable[[Controller], Task]) -> int:
    """Queue a task, leave it to a supervisor of its own, and return as soon as that has begun."""
    if os.environ.get("ADJOURN_RUN_ID"):
        raise Misuse(
            "--detach is refused inside a run: nothing of a run outlives it",
            way_out="adjourn run -- COMMAND",
        )
    controller = open_controller(session.root)
    session.settle(controller)
    task = queue(controller)
    with naming(session, task):
        scene = controller.scene(task.id)
        controller.store.close()
        if task.state is TaskState.QUEUED and not has_worker(session.root, task.spec.pool):
            _leave_to_a_copy(session, task)
    if session.wants_json:
        from adjourn.core.documents import manifest_of  # only JSON needs it (bench start)

        session.print_document(manifest_of(scene, hint=session.commands("wait", task.id)))
    else:
        print_exactly(task.id)
    return exits.COMPLETED


def _leave_to_a_copy(session: Session, task: Task) -> None:
    """Fork twice, so that the copy belongs to nobody.

    Return when it has begun, or raise why it could not.
    """
    try:
        reading, writing = os.pipe()
        child = os.fork()
    except OSError as error:
        raise _raised(
            session, task, _Failure(f"no process could be made for it: {error.strerror}")
        ) from None
    if child == 0:
        os.close(reading)
        _be_copy(session, task, writing)
    os.close(writing)
    os.waitpid(child, 0)
    failure = _failure_from(reading)
    os.close(reading)
    if failure:
        raise _raised(session, task, failure)


def _failure_from(reading: int) -> _Failure | None:
    """Return why the copy could not begin, or None if it has begun, or takes its time."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    if not poll.poll(_LONGEST * 1000):
        return None
    content = os.read(reading, select.PIPE_BUF)
    if not content:
        return _Failure(_KILLED)
    return msgspec.json.decode(content, type=_Failure | None)


def _raised(session: Session, task: Task, failure: _Failure) -> AdjournError:
    """Return what to raise.

    A new task has been recorded, so the command that helps is never the same command again.
    """
    if failure.code != NotStarted.code:
        error = AdjournError(failure.sentence, way_out=failure.way_out)
        error.code, error.exit_code = failure.code, failure.exit_code
        return error
    sentence = (
        f"task {task.id} could not be started: {failure.sentence}; nothing of it ran, and it stays"
        " queued"
    )
    return NotStarted(sentence, way_out=session.commands("resume", task.id))


def _be_copy(session: Session, task: Task, writing: int) -> NoReturn:
    """Be the first child, whose own child supervises the task.

    Neither returns into the frames of the command.
    """

    def report_failure(failure: _Failure | None) -> None:
        nonlocal writing
        if writing >= 0:
            os.write(writing, msgspec.json.encode(failure)[: select.PIPE_BUF])
            os.close(writing)
            writing = -1

    try:
        os.setsid()
        if os.fork() == 0:
            _supervise(session, task, report_failure)
    except OSError as error:
        report_failure(_Failure(f"no process could be made for it: {error.strerror}"))
    finally:
        os._exit(0)


def _supervise(
    session: Session, task: Task, report_failure: Callable[[_Failure | None], None]
) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    session.wants_json = True
    try:
        controller, supervisor = open_supervisor(session.root)
    except AdjournError as error:
        report_failure(_Failure(error.sentence))
        return
    supervisor.on_started = lambda: report_failure(None)
    try:
        report(session, controller, supervisor.run(task))
    except NotStarted as error:
        report_failure(_Failure(error.reason))
    except WorkspaceBusy as error:
        report_failure(_Failure(error.sentence))
    except Conflict:
        report_failure(None)  # somebody else was faster and runs it
    except AdjournError as error:
        report_failure(_Failure(error.sentence, error.code, error.exit_code, error.way_out))
    finally:
        supervisor.close()

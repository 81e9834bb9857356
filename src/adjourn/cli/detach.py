"""Leaves a task to a copy of this command in a session of its own."""

import os
import select
from collections.abc import Callable
from typing import NoReturn

import msgspec

from adjourn.cli.foreground import naming, report
from adjourn.cli.program import command
from adjourn.cli.session import Session
from adjourn.controller.whole import Controller
from adjourn.core import exits
from adjourn.core.errors import AdjournError, Conflict, Misuse, NotStarted, WorkspaceBusy
from adjourn.core.manifest import manifest_of
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.wiring import has_worker
from adjourn.wiring.controller import open_controller
from adjourn.wiring.supervision import open_supervisor

_LONGEST = 15.0  # seconds until it is left to itself, whether it has begun or not
_KILLED = "the detached supervisor was killed before it began"


class _Failure(msgspec.Struct):
    """Why the copy could not begin."""

    sentence: str
    code: str = NotStarted.code
    exit_code: int = exits.FAILED
    way_out: str = ""


def detached(session: Session, queue: Callable[[Controller], Task]) -> int:
    """Queue a task, leave it to a supervisor of its own, and return as soon as that has begun."""
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
    """Fork twice, so that the copy belongs to nobody; return when it has begun, or raise why it could not."""
    try:
        reading, writing = os.pipe()
        child = os.fork()
    except OSError as error:
        raise _raised(session, task, _Failure(f"no process could be made for it: {error.strerror}")) from None
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
    """Return what to raise. A new task has been recorded, so the command that helps is never the same command again."""
    if failure.code != NotStarted.code:
        error = AdjournError(failure.sentence, way_out=failure.way_out)
        error.code, error.exit_code = failure.code, failure.exit_code
        return error
    sentence = f"task {task.id} could not be started: {failure.sentence}; nothing of it ran, and it stays queued"
    return NotStarted(sentence, way_out=command(session, "resume", task.id))


def _be_copy(session: Session, task: Task, writing: int) -> NoReturn:
    """Be the first child, whose own child supervises the task; neither returns into the frames of the command."""

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


def _supervise(session: Session, task: Task, report_failure: Callable[[_Failure | None], None]) -> None:
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

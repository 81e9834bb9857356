"""How a task goes on: the exact next command, ready to paste."""

import os
import sys
from functools import cache

from adjourn.cli.session import Session
from adjourn.core.ask import Ask, AskKind
from adjourn.core.documents import is_resumable
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import command_line, command_rows


def command(session: Session, *words: str) -> str:
    """Return a command line of this very program on this very store."""
    store = ["--store", session.root] if session.given_store else []
    at = words.index("--") if "--" in words else len(words)
    return command_line(
        [_program(sys.argv[0], os.environ.get("PATH", "")), *words[:at], *store, *words[at:]]
    )


@cache
def _program(called: str, path: str) -> str:
    """Return `adjourn` if a shell finds us under that name, else the path it was called by."""
    called = os.path.abspath(called)
    for place in path.split(os.pathsep):
        found = os.path.join(place, "adjourn")
        if os.access(found, os.X_OK):
            return (
                "adjourn"
                if os.path.realpath(found) == os.path.realpath(called)
                else _path_of(called)
            )
    return _path_of(called)


def _path_of(called: str) -> str:
    return called if os.path.basename(called) == "adjourn" else "adjourn"


def resume_hint(session: Session, scene: Scene) -> str:
    """Return one command that goes on headless, exactly as printed."""
    task, run = scene.task, scene.run
    checkpoint = (run.checkpoint_id if run else None) or task.id
    match task.state:
        case TaskState.PAUSED:
            return (
                command(session, "-c", checkpoint)
                if _can_go_on(scene)
                else command(session, "restart", task.id)
            )
        case TaskState.WAITING:
            return _reply_hint(session, scene, checkpoint)
        case TaskState.QUEUED:
            return command(session, "resume", task.id)
        case TaskState.RUNNING:
            return command(session, "wait", task.id)
        case TaskState.FAILED | TaskState.CANCELED | TaskState.SUCCEEDED:
            return command(session, "restart", task.id)


def _reply_hint(session: Session, scene: Scene, checkpoint: str) -> str:
    asks = scene.open_asks
    uncertain = next((ask for ask in asks if ask.kind is AskKind.UNCERTAIN), None)
    if uncertain:
        return command(session, "show", scene.task.id)  # what became of it is for a person to say
    approvals = [
        word
        for ask in asks
        if ask.kind is AskKind.APPROVAL
        for word in ("--approve", ask.tool_call_id)
    ]
    if approvals:
        return command(session, "-c", checkpoint, *approvals)
    if len(asks) == 1:
        return command(session, "-c", checkpoint, *_as_argument(_example(asks[0])))
    answers = [word for ask in asks for word in ("--answer", f"{ask.key}={_example(ask)}")]
    if answers:
        return command(session, "-c", checkpoint, *answers)
    return command(session, "show", *(scene.waiting_on[:1] or [scene.task.id]))


def _example(ask: Ask) -> str:
    return ask.choices[0] if ask.choices else "your answer"


def _as_argument(text: str) -> tuple[str, ...]:
    """Keep a text from being taken for an option."""
    return ("--", text) if text.startswith("-") else (text,)


def next_step(session: Session, scene: Scene) -> list[str]:
    """Say how to go on, one command per way."""
    task = scene.task
    match task.state:
        case TaskState.WAITING:
            lines = [line for ask in scene.open_asks for line in _ways_to_settle(session, ask)]
            for child in scene.waiting_on:
                lines += _way(session, "Look at it:   ", command(session, "show", child))
            is_known = all(ask.kind is not AskKind.UNCERTAIN for ask in scene.open_asks)
            return (
                [*lines, *_way(session, "Then:         ", _going_on(session, scene))]
                if lines and is_known
                else lines
            )
        case TaskState.PAUSED:
            resume = _way(session, "Resume with: ", command(session, "resume", task.id))
            first = (
                resume
                if _can_go_on(scene)
                else ["It cannot be resumed: its agent had saved nothing yet."]
            )
            return [*first, *_way(session, "Restart with: ", command(session, "restart", task.id))]
        case TaskState.QUEUED:
            return _way(session, "Start with:   ", command(session, "resume", task.id))
        case TaskState.RUNNING:
            return _way(session, "Wait with:    ", command(session, "wait", task.id))
        case TaskState.FAILED | TaskState.CANCELED:
            return _way(session, "Restart with: ", command(session, "restart", task.id))
        case TaskState.SUCCEEDED:
            return []


def _way(session: Session, head: str, words: str) -> list[str]:
    return command_rows(head, words, columns=session.columns)


def _can_go_on(scene: Scene) -> bool:
    """Say whether a paused task has something to go on from."""
    return scene.run is None or is_resumable(scene.task, scene.run)


def _going_on(session: Session, scene: Scene) -> str:
    """Return what goes on once all is settled.

    With the task, or with its plan where its own work is done.
    """
    task = scene.task
    if task.spec.plan and any(ask.review for ask in scene.open_asks):
        return command(session, "execute", task.spec.plan)
    return command(session, "resume", task.id)


def _ways_to_settle(session: Session, ask: Ask) -> list[str]:
    match ask.kind:
        case AskKind.APPROVAL:
            return [
                *_way(session, "Approve with: ", command(session, "approve", ask.id)),
                *_way(session, "Reject with:  ", command(session, "reject", ask.id)),
            ]
        case AskKind.QUESTION:
            answer = command(session, "answer", ask.id, *_as_argument(_example(ask)))
            return _way(session, "Answer with:  ", answer)
        case AskKind.UNCERTAIN:
            call = f"{ask.task_id}.{ask.tool_call_id}"
            return _way(
                session,
                "Settle with:  ",
                f"{command(session, 'settle', call)} it-ran|it-did-not|run-again",
            )

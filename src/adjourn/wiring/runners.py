"""Makes the part of a task's spec that says what is to be done."""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, TypedDict

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.agent.calls import Look
from adjourn.core.documents import is_resumable
from adjourn.core.errors import CannotResume, Misuse
from adjourn.core.kept_documents import RAW
from adjourn.core.states import TaskState
from adjourn.core.task import OnRejection, Run, Task
from adjourn.supervision.workspace_notes import head_at_pause
from adjourn.workspace.git import Head, head_of


class Work(TypedDict, total=False):
    """What is to be done, by whom, and what a rejection does."""

    runner: str
    argv: tuple[str, ...]
    prompt: str
    setup: str
    on_rejection: OnRejection


def command_work(argv: Sequence[str]) -> Work:
    """Return the work of running a command."""
    return Work(runner="command", argv=tuple(argv))


def prompt_work(runner: str, prompt: str, options: Sequence[str] = ()) -> Work:
    """Return the work of having an agent work on a prompt.

    A runner's settings are checked before anything is recorded.
    """
    if not prompt.strip():
        raise Misuse("the prompt is empty", way_out=f'adjourn run --runner {runner} "PROMPT"')
    given = options_of(options)
    setup = msgspec.json.encode(_setup(runner, given)).decode()
    return Work(
        runner=runner,
        argv=("adjourn", f"_{runner}"),
        prompt=prompt,
        setup=setup,
        on_rejection=OnRejection.TELL,
    )


def _setup(runner: str, given: dict[str, str]) -> object:
    if runner == "agent":
        from adjourn.wiring.agent_options import agent_setup

        return agent_setup(given)
    read_setup: Any = import_module(f"adjourn.runners.{runner}.options").read_setup
    return read_setup(given, os.environ)


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Read what is said as KEY=VALUE."""
    return dict(_option(each) for each in words)


def _option(words: str) -> tuple[str, str]:
    key, equals, value = words.partition("=")
    if not equals or not key:
        raise Misuse(f"--option takes KEY=VALUE, not {words}", way_out="adjourn run --help")
    return key, value


_LEFT = frozenset({TaskState.WAITING, TaskState.PAUSED, TaskState.QUEUED})
_SHORT = 12
_WITH_SESSIONS = ("claude", "codex")  # whose session lies outside of the store


def looks_at(controller: Controller, task: Task, *, starts: bool = False) -> list[Look]:
    """Look at all that a resume of the task would need; nothing where it needs nothing but the store.

    Who is about to start the agent `starts` its program to ask for its version. Nobody else starts anything.
    """
    run = _last_run(controller, task)
    if (
        task.spec.runner not in _WITH_SESSIONS
        or task.state not in _LEFT
        or run is None
        or run.session_id != task.session_id
    ):
        return []
    if task.state is TaskState.PAUSED and not is_resumable(task, run):
        return [
            Look(
                thing="session",
                fine=False,
                says="it was not saved yet when the task was interrupted",
            ),
            _workspace(task),
        ]
    look: Any = import_module(f"adjourn.runners.{task.spec.runner}.check").looks
    found: Iterator[Look] = look(
        task.spec,
        of=task.session_id,
        ref=run.session_ref,
        documents=lambda name: controller.documents.read(task.id, RAW.of(name)),
        environment=os.environ,
        starts=starts,
    )
    return [
        *found,
        _workspace(task),
        *_commit(head_at_pause(controller, task), head_of(task.spec.workspace)),
    ]


def require_resumable(controller: Controller, task: Task) -> None:
    """Refuse to go on where it cannot be, before anything is recorded or started.

    Nothing is begun anew in its place.
    """
    broken = [look for look in looks_at(controller, task, starts=True) if not look.fine]
    run = _last_run(controller, task)
    if not broken or run is None:
        return
    why = "; ".join(f"{look.thing}: {look.says}" for look in broken)
    ref = f"session {run.session_ref}" if run.session_ref else "no session"
    sentence = f"task {task.id} (run {run.id}) cannot be resumed: {task.spec.runner}, {ref}: {why}"
    raise CannotResume(sentence, way_out=f"adjourn restart {task.id}")


def _last_run(controller: Controller, task: Task) -> Run | None:
    with controller.store.read() as view:
        return view.run(task.id, task.runs) if task.runs else None


def _workspace(task: Task) -> Look:
    is_there = os.path.isdir(task.spec.workspace)
    says = task.spec.workspace if is_there else f"{task.spec.workspace} is not there any more"
    return Look(thing="workspace", fine=is_there, says=says)


def _commit(then: Head | None, now: Head | None) -> Iterator[Look]:
    """Say how far the workspace has moved under the agent.

    It may go on all the same, but its model knows only what was there.
    """
    if then is None and now is None:
        return
    before = (
        f"it was {_named(then)} when the task left"
        if then
        else "nobody noted it when the task left"
    )
    since = "as when the task left" if then == now else before
    yield Look(
        thing="commit",
        fine=True,
        says=f"{_named(now) if now else 'no repository any more'}; {since}",
    )


def _named(head: Head) -> str:
    return f"{head.commit[:_SHORT] if head.commit else 'no commit'}{f' ({head.ref})' if head.ref else ''}"

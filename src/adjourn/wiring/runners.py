"""Makes the part of a task's spec that says what is to be done, and checks whether it can go on."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.agent.calls import SessionCheck
from adjourn.core.documents import is_resumable
from adjourn.core.errors import CannotResume, Misuse
from adjourn.core.plan.plan_file import Runners
from adjourn.core.states import TaskState
from adjourn.core.task import OnRejection, Run, Spec, Task
from adjourn.ports.runner import NO_TABLE, ConfigTable, LeftSession
from adjourn.runners import COMMAND, DEFAULT_AGENT, RunnerNames, find_kind
from adjourn.runners.agent.options import Setting, settings
from adjourn.settings.config import exit_codes_setting, read_config
from adjourn.supervision.workspace_notes import head_at_pause
from adjourn.workspace.git import Head, head_of

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path
    from adjourn.core.agent.transcript import Message

__all__ = ["DEFAULT_AGENT", "RunnerNames", "Work", "command_work", "find_kind", "prompt_work"]

RUNNERS = Runners(names=RunnerNames(), command=COMMAND, agent=DEFAULT_AGENT)
_LEFT = frozenset({TaskState.WAITING, TaskState.PAUSED, TaskState.QUEUED})
_SHORT = 12


class Work(TypedDict, total=False):
    """What is to be done, by whom, and what a rejection does."""

    runner: str
    argv: tuple[str, ...]
    prompt: str
    setup: str
    on_rejection: OnRejection


def command_work(argv: Sequence[str]) -> Work:
    """Return the work of running a command."""
    return Work(runner=COMMAND, argv=tuple(argv))


def prompt_work(runner: str, prompt: str, options: Sequence[str] = ()) -> Work:
    """Return the work of having an agent work on a prompt.

    The runner's options are checked before anything is recorded.
    """
    if not prompt.strip():
        raise Misuse("the prompt is empty", way_out=f'adjourn run --runner {runner} "PROMPT"')
    kind = find_kind(runner)
    table = config_table(kind.config_table) if kind.config_table else NO_TABLE
    agent = runner.partition(":")[2]
    given = options_of(options) | ({"agent": agent} if agent else {})
    setup = kind.read_options(given, os.environ, table)
    return Work(
        runner=runner,
        argv=kind.argv,
        prompt=prompt,
        setup=msgspec.json.encode(setup).decode(),
        on_rejection=OnRejection.TELL,
    )


def spec_of(
    work: Work, folder: str | None, *, is_gated: bool, parent_run: str | None = None
) -> Spec:
    """Return the task that a server's client wants: its work, and the directory to do it in."""
    workspace = folder or os.getcwd()
    if not os.path.isabs(workspace) or "\0" in workspace or not os.path.isdir(workspace):
        raise Misuse(
            f"cwd {workspace} is not a directory with an absolute path",
            way_out="leave cwd out, or name a directory that is there",
        )
    return Spec(
        **work,
        workspace=os.path.realpath(workspace),
        parent_run=parent_run,
        pause_on_approval=is_gated,
        asks_by_exit_code=exit_codes_setting() == "ask",
    )


def config_table(name: str) -> ConfigTable:
    """Return the table of that name in the user's config."""
    config = read_config()
    try:
        values = msgspec.convert(config.content.get(name, {}), dict[str, Any])
    except msgspec.ValidationError:
        raise Misuse(
            f"{config.path}: `{name}` must be a table: write [{name}]", way_out="adjourn config"
        ) from None
    return ConfigTable(path=config.path, values=values)


def agent_settings(given: Mapping[str, str]) -> list[Setting]:
    """Return every setting of the built-in agent with its origin."""
    return list(settings(given, os.environ, config_table(DEFAULT_AGENT)))


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Read what is said as KEY=VALUE."""
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise Misuse(f"--option takes KEY=VALUE, not {word}", way_out="adjourn run --help")
        options[key] = value
    return options


# --- whether a task can go on ---------------------------------------------------------------------


def setup_with_limits(task: Task, given: Mapping[str, str]) -> str:
    """Return how a task's agent is set up with other limits, or raise Misuse."""
    kept = (task.spec.setup or "").encode()
    return find_kind(task.spec.runner).with_limits(kept, given).decode()


def check_resumability(
    controller: Controller, task: Task, *, starts: bool = False
) -> list[SessionCheck]:
    """Check all that a resume of the task would need; nothing if it needs nothing but the store.

    Only who is about to start the agent `starts` its program, to ask for its version.
    """
    kind, run = find_kind(task.spec.runner), _last_run(controller, task)
    if (
        not kind.has_session
        or task.state not in _LEFT
        or run is None
        or run.session_id != task.session_id
    ):
        return []

    is_there = os.path.isdir(task.spec.workspace)
    says = task.spec.workspace if is_there else f"{task.spec.workspace} is not there any more"
    workspace = SessionCheck(thing="workspace", fine=is_there, says=says)
    if task.state is TaskState.PAUSED and not is_resumable(task, run):
        says = "it was not saved yet when the task was interrupted"
        return [SessionCheck(thing="session", fine=False, says=says), workspace]

    session = _left_session(controller, task, run, starts=starts)
    return [
        *kind.check_session(task.spec, session),
        workspace,
        *_commit(head_at_pause(controller, task), head_of(task.spec.workspace)),
    ]


def _left_session(
    controller: Controller, task: Task, run: Run | None, *, starts: bool
) -> LeftSession:
    return LeftSession(
        of=task.session_id,
        ref=run.session_ref if run else None,
        documents=partial(controller.documents.read_named, task.id),
        environment=os.environ,
        starts=starts,
    )


def read_transcript(controller: Controller, task: Task) -> "list[Message]":
    """Return the conversation of an agent of others, as its own files or our copy have it."""
    session = _left_session(controller, task, _last_run(controller, task), starts=False)
    return find_kind(task.spec.runner).read_transcript(task.spec, session)


def require_resumable(controller: Controller, task: Task) -> None:
    """Refuse to go on where it cannot be, before anything is recorded or started.

    Nothing is started in its place.
    """
    broken = [look for look in check_resumability(controller, task, starts=True) if not look.fine]
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


def _commit(then: Head | None, now: Head | None) -> Iterator[SessionCheck]:
    """Say how far the workspace has moved since the agent left.

    It may go on all the same, but its model knows only what was there.
    """
    if then is None and now is None:
        return
    if then == now:
        since = "as when the task left"
    elif then:
        since = f"it was {_named(then)} when the task left"
    else:
        since = "nobody noted it when the task left"
    here = _named(now) if now else "no repository any more"
    yield SessionCheck(thing="commit", fine=True, says=f"{here}; {since}")


def _named(head: Head) -> str:
    commit = head.commit[:_SHORT] if head.commit else "no commit"
    return f"{commit} ({head.ref})" if head.ref else commit

"""The run that a TUI started: it has a supervisor of its own, and Ctrl+C pauses it from here."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import Conflict, Misuse
from adjourn.core.states import TaskState
from adjourn.core.task import Spec, Task
from adjourn.mcp_server.launch import Launch, Launcher
from adjourn.settings.config import exit_codes_setting, wants_pauses
from adjourn.supervision.wait import interrupt_orphan
from adjourn.supervision.workspace_notes import require_workspace
from adjourn.wiring.own_program import own_environment, own_python
from adjourn.wiring.plan_files import open_plan
from adjourn.wiring.runners import Work, command_work, find_kind, prompt_work, require_resumable

_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})
_HOW = "run -- COMMAND, run --runner NAME PROMPT, or execute PLAN"


class NewWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a person typed to start something: a command, a prompt for an agent, or a plan."""

    words: tuple[str, ...]  # of the adjourn command that does the same
    work: Work | None = None
    plan: str | None = None


def read_new_work(text: str) -> NewWork:
    """Read what a person typed behind `adjourn`, or say what can be started here."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise Misuse(f"this line cannot be read: {error}", way_out=_HOW) from None
    match words:
        case ("run", "--", _, *_):
            return NewWork(words=words, work=command_work(words[2:]))
        case ("run", "--runner", runner, *prompt) if prompt:
            if not find_kind(runner).driver:
                raise Misuse(f"{runner} takes no prompt", way_out="run -- COMMAND")
            said = " ".join(prompt)
            words = ("run", "--runner", runner, said)
            return NewWork(words=words, work=prompt_work(runner, said))
        case ("execute", path):
            return NewWork(words=words, plan=open_plan(path).path)
        case _:
            raise Misuse(f"here you can start: {_HOW}", way_out="anything else from a shell")


class OwnRun:
    """A task or a plan that this TUI started, until it is paused or has ended."""

    def __init__(
        self,
        *,
        task_id: str | None = None,
        launch: Launch | None = None,
        plan: str | None = None,
        executor: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self.task_id = task_id
        self.plan = plan
        self.is_pausing = False
        self._launch = launch
        self._executor = executor

    def active_task(self, controller: Controller) -> Task | None:
        """Return its task that runs or is about to; None if nothing of it does."""
        with controller.store.read() as view:
            if self.plan is not None:
                tasks = [each for each in view.running() if each.spec.plan == self.plan]
                return tasks[0] if tasks else None
            task = view.task(self.task_id) if self.task_id else None
        return task if task and task.state in _UNDER_WAY else None

    def pause(self, controller: Controller, root: str, *, by: Principal) -> Task | None:
        """Pause its active task through the controller, as every surface does; None if none is."""
        task = self.active_task(controller)
        if task is None:
            return None
        try:
            paused = controller.tasks.pause(task.id, by=by)
        except Conflict:  # it ended at this very moment
            return None
        self.task_id = task.id
        if paused.state is TaskState.RUNNING:
            interrupt_orphan(controller, paused, root=root)
        return paused

    def kill(self) -> None:
        """Do not wait for the end of the grace: a second interrupt kills the process."""
        if self._launch:
            self._launch.interrupt()
        elif self._executor and self._executor.poll() is None:
            self._executor.send_signal(signal.SIGINT)

    def reap(self) -> None:
        """Let go of an executor that has left."""
        if self._executor:
            self._executor.poll()


def start_work(controller: Controller, root: str, new: NewWork, *, by: Principal) -> OwnRun:
    """Start what was typed, here, under a supervisor that outlives this TUI."""
    if new.work is None:
        assert new.plan is not None  # noqa: S101 -- one of the two is there
        executor = subprocess.Popen(
            own_python("execute", new.plan, "--store", root, "--output", "json"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=own_environment(os.environ),
            start_new_session=True,  # the terminal's Ctrl+C is ours to handle
        )
        return OwnRun(plan=new.plan, executor=executor)
    spec = Spec(
        **new.work,
        workspace=os.path.realpath(os.getcwd()),
        pause_on_approval=wants_pauses(),
        asks_by_exit_code=exit_codes_setting() == "ask",
    )
    launcher = Launcher(root)
    launch = launcher.start(spec.pool, slot="-")
    task = launcher.commit(launch, lambda: controller.tasks.start(spec, by=by))
    return OwnRun(task_id=task.id, launch=launch)


def resume_task(controller: Controller, root: str, task: Task, *, by: Principal) -> OwnRun:
    """Go on with a paused or queued task, as `resume` does."""
    require_workspace(controller, task)
    if task.spec.is_driven:
        require_resumable(controller, task)
    return _go_on(root, task, lambda: controller.tasks.resume(task.id, by=by))


def restart_task(controller: Controller, root: str, task: Task, *, by: Principal) -> OwnRun:
    """Run a task again from nothing, as `restart` does."""
    require_workspace(controller, task)
    workspace = task.spec.workspace
    return _go_on(root, task, lambda: controller.tasks.restart(task.id, by=by, workspace=workspace))


def _go_on(root: str, task: Task, commit: Callable[[], Task]) -> OwnRun:
    launcher = Launcher(root)
    launch = launcher.start(task.spec.pool, task_id=task.id)
    return OwnRun(task_id=launcher.commit(launch, commit).id, launch=launch)

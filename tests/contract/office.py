"""A controller over a store, with a clock, ids and processes of the test's own."""

from typing import Any

from adjourn.controller.context import Context
from adjourn.controller.controller import Controller
from adjourn.controller.gate import PolicyGate
from adjourn.controller.runs import Claimed
from adjourn.core.ask import ApprovalAsk, Ask, Principal, Question, QuestionAsk, Reply, Verb
from adjourn.core.outcome import Exit
from adjourn.core.policy.judgement import Effect
from adjourn.core.scene import Scene
from adjourn.core.task import Run, Task
from adjourn.core.trail.events import Event
from adjourn.ports.store import Store
from adjourn.ports.world import NewId, Runner
from adjourn.runners.command import CommandRunner
from adjourn.runners.driver import DriverRunner
from adjourn.testing.values import NOON, a_spec
from tests.authorities import everybody
from tests.stateful.world import Disk, FakeProcesses, Ids, Process, Rulebook, shim_of

ME = Principal(name="uid:1000")
YOU = Principal(name="uid:2000")
DONE = Exit(code=0, output="all done\n")
FAILED = Exit(code=1)
ASKS_10, ASKS_90 = Exit(code=10), Exit(code=90)
INTERRUPTED = Exit(signal=2, interrupted=True)
KILLED = Exit(signal=9)


def find_runner(name: str) -> Runner:
    if name == "command":
        return CommandRunner()
    is_ours = name == "agent"
    effect = Effect.READ_ONLY if is_ours else Effect.UNKNOWN
    return DriverRunner(effect=effect, needs_session=not is_ours, makes_calls=not is_ours)


class Office:
    """Lets tasks run without processes, and people decide."""

    def __init__(self, store: Store, *, new_id: NewId | None = None, **trust: Any) -> None:
        self.now = NOON
        self.me = ME
        self.processes = FakeProcesses()
        self.rules = Rulebook()
        self.disk = Disk()
        self.context = Context(
            store,
            clock=lambda: self.now,
            new_id=new_id or Ids(),
            find_runner=find_runner,
            open_processes=lambda: self.processes,
            open_gate=lambda: PolicyGate(
                self.rules,
                self.disk.look,
                lambda: self.now,
                runs_own_calls=lambda runner: find_runner(runner).needs_session,
            ),
            **(everybody() | trust),
        )
        self.controller = Controller(self.context)

    def start(self, **words: Any) -> Task:
        return self.controller.tasks.start(a_spec(**words), by=self.me)

    def start_inside(self, run: Run, *, leaves: bool = True) -> Task:
        """Start a task in a run.

        The run hears that it is not done and will leave for it, or does not care.
        """
        spec = a_spec(parent_run=run.id)
        child = self.controller.tasks.start(
            spec, by=Principal(name="uid:1000", inside_run=run.id), key="run:child"
        )
        if leaves:
            self.controller.tasks.leave_open(run.id, child)
        return child

    def claim(self, task: Task, *, supervisor: str = "anna-0") -> Claimed:
        """Take a queued task whose command is still what was let through."""
        claimed = self.controller.runs.claim(task.id, supervisor=supervisor)
        assert isinstance(claimed, Claimed)
        return claimed

    def begin(self, task: Task, *, supervisor: str = "anna-0") -> Claimed:
        """Start a queued task's process."""
        claimed = self.claim(task, supervisor=supervisor)
        self.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
        process = self.processes.of_run[claimed.run.id] = Process(claimed.run, claimed.call)
        process.open_gate()
        return claimed

    def run(self, task: Task, exit_: Exit = DONE, *, asking: tuple[str, ...] = ()) -> Task:
        """Let a queued task run from start to exit."""
        run = self.begin(task).run
        for key in asking:
            self.ask(run, key)
        return self.controller.runs.finish(run, exit_)

    def ask(self, run: Run, key: str = "region", **words: Any) -> QuestionAsk:
        asked: dict[str, Any] = {"prompt": f"Which {key}?", "key": key, **words}
        return self.controller.asks.ask(run.id, Question(**asked))

    def reply(
        self, ask: Ask, verb: Verb, text: str | None = None, *, by: Principal | None = None
    ) -> Task:
        self.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=verb, text=text)], by=by or self.me
        )
        return self.task(ask.task_id)

    def open_ask(self, task: Task) -> Ask:
        (ask,) = self.scene(task).open_asks
        return ask

    def open_approval(self, task: Task) -> ApprovalAsk:
        ask = self.open_ask(task)
        assert isinstance(ask, ApprovalAsk)
        return ask

    def waiting(self, **words: Any) -> tuple[Task, ApprovalAsk]:
        """Return a task that left with exit code 90, and what it asks."""
        task = self.run(self.start(**words), ASKS_90)
        return task, self.open_approval(task)

    def lost(self) -> Task:
        """Return a task whose process vanished."""
        claimed = self.begin(self.start())
        return self.controller.runs.lose(claimed.run)

    def task(self, task_id: str) -> Task:
        return self.scene_of(task_id).task

    def scene(self, task: Task) -> Scene:
        return self.scene_of(task.id)

    def scene_of(self, task_id: str) -> Scene:
        return self.controller.scene(task_id)

    def runs(self, task: Task) -> list[Run]:
        with self.controller.store.read() as view:
            return view.runs(task.id)

    def events(self, task: Task) -> list[Event]:
        with self.controller.store.read() as view:
            return view.events(task.id)

"""Any sequence of starts, exits, replies, crashes and changes of mind, done to two stores at once."""

from collections import Counter
from operator import attrgetter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adjourn.core.ask import Ask, AskKind, Principal, Question, Reply, Verb, Verdict, number_of_call
from adjourn.core.outcome import Exit
from adjourn.core.resumption import PLAIN, Resumption
from adjourn.core.states import ENDED, CallState, TaskState
from adjourn.core.task import OnRejection, Run, Spec, Task, run_id
from tests.stateful import invariants
from tests.stateful.world import Process, Refusal, Rows, World, shim_of

ME = Principal(name="uid:1000")
SUPERVISORS = ["anna", "bela"]
ENOUGH = 3  # tasks at a time: with few of them, more happens to each
ACTS = ["pause", "cancel", "restart", "forget", "resume", "claim", "settle", "give_up"]
MOVES_EXECUTING = {"finish", "release", "lose", "recover"}

picks = st.integers(0, 30)
keys = st.sampled_from(["region", "size"])
texts = st.sampled_from([None, "eu", "mars"])
EXIT_10, EXIT_90 = Exit(code=10), Exit(code=90)
EXIT_PLAN_1, EXIT_PLAN_2 = (
    Exit(code=90, output='{"plan": 1}\n'),
    Exit(code=10, output='{"plan": 2}\n'),
)
exits = st.sampled_from(
    [
        Exit(code=0, output="all done\n"),
        Exit(code=1),
        EXIT_10,
        EXIT_90,
        EXIT_PLAN_1,
        EXIT_PLAN_2,
        Exit(signal=9),
        Exit(code=130, interrupted=True),
        Exit(signal=9, interrupted=True),
        Exit(error="no such file"),
    ]
)
supervisors = st.sampled_from(SUPERVISORS)
specs = st.builds(
    Spec,
    runner=st.just("command"),
    argv=st.just(("./deploy",)),
    workspace=st.just("/w"),
    decision_arg=st.booleans(),
    on_rejection=st.sampled_from(OnRejection),
    expires_after=st.sampled_from([None, None, 1_000]),
)
questions = st.builds(
    Question,
    prompt=st.sampled_from(["Which?", "Which one?"]),
    key=keys,
    choices=st.sampled_from([(), ("eu", "us")]),
    expires_after=st.sampled_from([None, None, 1]),
)
tool_calls = st.lists(st.sampled_from(["tc_1", "tc_2", "tc_3", "tc_9"]), max_size=2).map(tuple)
resumptions = st.one_of(
    st.just(PLAIN),
    st.just(Resumption(approve_all=True)),
    st.just(Resumption(reject_all=True, reason="no")),
    st.just(Resumption(approve_all=True, value="canary")),
    st.sampled_from(["eu", "us", "mars"]).map(lambda text: Resumption(text=text)),
    st.sampled_from(["eu", "mars"]).map(lambda text: Resumption(answers=(f"region={text}",))),
    st.builds(Resumption, approve=tool_calls, reject=tool_calls),
)


class Life(RuleBasedStateMachine):
    """Drives both controllers, and remembers what no store is trusted with."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.new_world()
        self.started: Counter[str] = Counter()  # how often a call's process truly began
        self.allowed_again: Counter[str] = Counter()  # how often a person said: run it again
        self.ever_ran: list[Run] = []
        self.settled: dict[str, Ask] = {}
        self.before = self.world.rows
        self.act = ""

    def new_world(self) -> World:
        """Return the world that this life is lived in."""
        return World()

    def teardown(self) -> None:
        self.world.close()

    def do(self, act: str, *arguments: Any, **options: Any) -> Any:
        """Do one thing to both controllers."""
        self.before, self.act = self.world.rows, act.rpartition(".")[2]
        operation = attrgetter(act)
        return self.world.do(lambda controller: operation(controller)(*arguments, **options))

    # --- what there is to choose from -------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        return self.world.rows

    def task(self, pick: int) -> Task:
        return self.rows.tasks[pick % len(self.rows.tasks)]

    def has_tasks(self) -> bool:
        return bool(self.rows.tasks)

    def asks(self) -> list[Ask]:
        return [ask for asks in self.rows.asks.values() for ask in asks]

    def has_asks(self) -> bool:
        return bool(self.asks())

    def processes(
        self, *, supervised: bool | None = None, alive: bool | None = None
    ) -> list[Process]:
        """Return the processes of runs that have not ended, narrowed down."""
        known = self.world.processes
        running = [known.of_run[run_id(task.id, task.runs)] for task in self.rows.running]
        return [
            process
            for process in running
            if supervised in {None, known.supervisor_lives(process.run.supervisor)}
            and alive in {None, process.is_alive}
        ]

    def queued(self) -> list[Task]:
        return [task for task in self.rows.tasks if task.state is TaskState.QUEUED]

    def inside(self) -> list[Process]:
        """Return those that can say something."""
        return self.processes(alive=True)

    def watched(self) -> list[Process]:
        """Return those whose end is seen by their supervisor."""
        return self.processes(supervised=True, alive=True)

    def at_the_gate(self) -> list[Process]:
        """Return those whose supervisor has claimed them and not opened the gate."""
        return [
            process
            for process in self.processes(supervised=True)
            if self._is(process, CallState.CLAIMED)
        ]

    def _is(self, process: Process, state: CallState) -> bool:
        return self.rows.calls[process.run.task_id][process.call.number - 1].state is state

    # --- tasks begin ------------------------------------------------------------------------------

    @initialize(specs=st.lists(specs, min_size=1, max_size=3))
    def begin_with_some(self, *, specs: list[Spec]) -> None:
        for spec in specs:
            self.do("tasks.start", spec, by=ME)

    @precondition(lambda self: len(self.rows.tasks) < ENOUGH)
    @rule(spec=specs)
    def start(self, *, spec: Spec) -> None:
        self.do("tasks.start", spec, by=ME)

    @precondition(lambda self: self.inside() and len(self.rows.tasks) < 2 * ENOUGH)
    @rule(pick=picks, leaves=st.booleans())
    def start_inside(self, *, pick: int, leaves: bool) -> None:
        """A script starts a task of its own, and perhaps hears that it is not done."""
        self._start_inside(_one(self.inside(), pick).run, leaves=leaves)

    def _start_inside(self, parent: Run, *, leaves: bool) -> None:
        spec = Spec(runner="command", argv=("./child",), workspace="/w", parent_run=parent.id)
        child = self.do(
            "tasks.start",
            spec,
            by=Principal(name="uid:1000", inside_run=parent.id),
            key="run:./child",
        )
        if leaves and child.state not in ENDED:
            self.do("tasks.leave_open", parent.id, child)

    # --- runs begin -------------------------------------------------------------------------------

    @precondition(lambda self: self.queued())
    @rule(pick=picks, supervisor=supervisors)
    def claim(self, *, pick: int, supervisor: str) -> None:
        self._claim(_one(self.queued(), pick), supervisor)

    @precondition(lambda self: self.queued())
    @rule(pick=picks, supervisor=supervisors)
    def claim_and_execute(self, *, pick: int, supervisor: str) -> None:
        self._execute(self._claim(_one(self.queued(), pick), supervisor))

    def _claim(self, task: Task, supervisor: str) -> Process:
        """Of two who want it, one gets it."""
        known = self.world.processes
        claimed = self.do("runs.claim", task.id, supervisor=known.living(supervisor))
        process = known.of_run[claimed.run.id] = Process(claimed.run, claimed.call)
        self.ever_ran.append(claimed.run)
        assert isinstance(self.do("runs.claim", task.id, supervisor="another"), Refusal)
        return process

    @precondition(lambda self: self.at_the_gate())
    @rule(pick=picks)
    def execute(self, *, pick: int) -> None:
        self._execute(_one(self.at_the_gate(), pick))

    def _execute(self, process: Process) -> None:
        assert not isinstance(
            self.do("runs.execute", process.run, shim=shim_of(process.run.id)), Refusal
        )
        process.open_gate()
        self.started[process.call.id] += 1

    @precondition(lambda self: self.at_the_gate())
    @rule(pick=picks, way=st.sampled_from(["no shim", "a shut gate", "a shut gate, written down"]))
    def start_fails(self, *, pick: int, way: str) -> None:
        """The same supervisor sees that there is no shim, or that the gate could not be opened."""
        process = _one(self.at_the_gate(), pick)
        if way == "no shim":
            assert not isinstance(
                self.do("runs.fail_to_start", process.run, why="no room"), Refusal
            )
            return
        if way == "a shut gate, written down":
            self.do("runs.execute", process.run, shim=shim_of(process.run.id))
        assert not isinstance(self.do("runs.release", process.run, why="the shim died"), Refusal)

    # --- runs end ---------------------------------------------------------------------------------

    @precondition(lambda self: self.watched())
    @rule(pick=picks, exit_=exits)
    def finish(self, *, pick: int, exit_: Exit) -> None:
        self._finish(_one(self.watched(), pick), exit_)

    @precondition(lambda self: self.watched())
    @rule(pick=picks, exit_=st.sampled_from([EXIT_10, EXIT_90, EXIT_PLAN_1, EXIT_PLAN_2]))
    def leave(self, *, pick: int, exit_: Exit) -> None:
        """Most processes here leave for a person."""
        self._finish(_one(self.watched(), pick), exit_)

    @precondition(lambda self: self.queued())
    @rule(
        pick=picks,
        supervisor=supervisors,
        asked=st.lists(questions, max_size=2),
        has_child=st.booleans(),
        exit_=exits,
    )
    def run_to_the_end(
        self, *, pick: int, supervisor: str, asked: list[Question], has_child: bool, exit_: Exit
    ) -> None:
        """It asks, starts a task, and leaves with 10 for both; else it ends as it likes."""
        process = self._claim(_one(self.queued(), pick), supervisor)
        self._execute(process)
        for question in asked:
            self.do("asks.ask", process.run.id, question)
        if has_child and not process.run.task_id.startswith(self.children()):
            self._start_inside(process.run, leaves=True)
            self._finish(process, EXIT_10)
        else:
            self._finish(process, exit_)

    def children(self) -> tuple[str, ...]:
        return tuple(task.id for task in self.rows.tasks if task.spec.parent_run)

    def _finish(self, process: Process, exit_: Exit) -> None:
        process.end(exit_)
        assert not isinstance(self.do("runs.finish", process.run, exit_), Refusal)

    @precondition(lambda self: self.watched())
    @rule(pick=picks)
    def shim_is_killed(self, *, pick: int) -> None:
        process = _one(self.watched(), pick)
        process.vanish()
        assert not isinstance(self.do("runs.lose", process.run), Refusal)

    @precondition(lambda self: self.ever_ran)
    @rule(
        pick=picks,
        exit_=exits,
        late=st.sampled_from(
            [
                "runs.finish",
                "runs.execute",
                "runs.release",
                "runs.lose",
                "asks.ask",
                "tasks.leave_open",
            ]
        ),
    )
    def somebody_is_late(self, *, pick: int, exit_: Exit, late: str) -> None:
        """A run that has ended takes nothing more."""
        run = _one(self.ever_ran, pick)
        if run.id in {process.run.id for process in self.processes()}:
            return
        arguments: dict[str, tuple[Any, ...]] = {
            "runs.finish": (run, exit_),
            "asks.ask": (run.id, Question(prompt="?", key="late")),
            "tasks.leave_open": (run.id, self.rows.tasks[0] if self.rows.tasks else None),
        }
        options: dict[str, dict[str, Any]] = {
            "runs.execute": {"shim": shim_of(run.id)},
            "runs.release": {"why": "late"},
        }
        assert isinstance(
            self.do(late, *arguments.get(late, (run,)), **options.get(late, {})), Refusal
        )

    # --- inside a run -----------------------------------------------------------------------------

    @precondition(lambda self: self.inside())
    @rule(pick=picks, question=questions)
    def ask(self, *, pick: int, question: Question) -> None:
        """Also while its supervisor is dead: the process does not know."""
        process = _one(self.inside(), pick)
        assert not isinstance(self.do("asks.ask", process.run.id, question), Refusal)

    # --- people -----------------------------------------------------------------------------------

    @precondition(has_asks)
    @rule(
        pick=picks,
        verb=st.sampled_from(Verb),
        text=texts,
        shown=st.sampled_from(["", "it", "other"]),
    )
    def decide(self, *, pick: int, verb: Verb, text: str | None, shown: str) -> None:
        ask = _one(self.asks(), pick)
        self.do(
            "decisions.decide",
            [Reply(ask_id=ask.id, verb=verb, text=text, digest=self._digest(ask, shown))],
            by=ME,
        )

    def _digest(self, ask: Ask, shown: str) -> str | None:
        number = number_of_call(ask)
        if not shown or number is None:
            return None
        return self.rows.calls[ask.task_id][number - 1].digest if shown == "it" else "00" * 32

    @precondition(lambda self: self.rows.inbox)
    @rule(pick=picks, says_yes=st.booleans())
    def decide_well(self, *, pick: int, says_yes: bool) -> None:
        """Most people answer what they are asked."""
        ask = _one(self.rows.inbox, pick)
        verbs = {
            AskKind.APPROVAL: Verb.APPROVE if says_yes else Verb.REJECT,
            AskKind.QUESTION: Verb.ANSWER,
        }
        said = self.do(
            "decisions.decide",
            [Reply(ask_id=ask.id, verb=verbs.get(ask.kind, Verb.SETTLE), text="eu")],
            by=ME,
        )
        assert isinstance(said, Refusal) == (ask.kind is AskKind.UNCERTAIN)

    @precondition(lambda self: len(self.rows.inbox) > 1)
    @rule(one=picks, other=picks, verbs=st.tuples(st.sampled_from(Verb), st.sampled_from(Verb)))
    def decide_two(self, *, one: int, other: int, verbs: tuple[Verb, Verb]) -> None:
        """Both, or none."""
        asks = (_one(self.rows.inbox, one), _one(self.rows.inbox, other))
        self.do(
            "decisions.decide",
            [
                Reply(ask_id=ask.id, verb=verb, text="eu")
                for ask, verb in zip(asks, verbs, strict=True)
            ],
            by=ME,
        )

    @precondition(has_asks)
    @rule(pick=picks, verb=st.sampled_from(Verb))
    def decide_inside_a_run(self, *, pick: int, verb: Verb) -> None:
        reply = Reply(ask_id=_one(self.asks(), pick).id, verb=verb, text="eu")
        refusal = self.do(
            "decisions.decide", [reply], by=Principal(name="uid:1000", inside_run="any.1")
        )
        assert refusal.kind == "NotAllowed"

    @precondition(has_tasks)
    @rule(pick=picks, resumption=resumptions)
    def resume(self, *, pick: int, resumption: Resumption) -> None:
        self.do("tasks.resume", self.task(pick).id, resumption, by=ME)

    @precondition(lambda self: self.uncertain())
    @rule(pick=picks, verdict=st.sampled_from(Verdict))
    def settle_well(self, *, pick: int, verdict: Verdict) -> None:
        task, number = _one(self.uncertain(), pick)
        assert not isinstance(self._settle(task, number, verdict), Refusal)

    def uncertain(self) -> list[tuple[Task, int]]:
        return [
            (task, call.number)
            for task in self.rows.tasks
            for call in self.rows.calls[task.id]
            if call.state is CallState.UNCERTAIN
        ]

    def _settle(self, task: Task, number: int, verdict: Verdict) -> Any:
        said = self.do("tasks.settle", task.id, number, verdict, by=ME)
        if verdict is Verdict.RUN_AGAIN and not isinstance(said, Refusal):
            self.allowed_again[f"{task.id}.tc_{number}"] += 1
        return said

    @precondition(has_tasks)
    @rule(pick=picks, act=st.sampled_from(ACTS), number=picks)
    def somebody_tries(self, *, pick: int, act: str, number: int) -> None:
        """Whether it is the time for it or not."""
        task = self.task(pick)
        match act:
            case "restart":
                self.do(
                    "tasks.restart", task.id, by=ME, workspace="/w" if number % 2 else "/elsewhere"
                )
            case "claim" if task in self.queued():
                self._claim(task, SUPERVISORS[0])
            case "claim":
                assert isinstance(self.do("runs.claim", task.id, supervisor="another"), Refusal)
            case "give_up" if task not in self.rows.running:
                self.do("tasks.give_up", task.id, why="its workspace is gone")
            case "give_up":
                return
            case "settle":
                self._settle(task, 1 + number % (task.calls + 1), Verdict.RUN_AGAIN)
            case _:
                self.do(f"tasks.{act}", task.id, by=ME)

    # --- what goes wrong --------------------------------------------------------------------------

    @precondition(lambda self: self.processes(supervised=True))
    @rule(pick=picks, was_about_to_open=st.booleans())
    def supervisor_is_killed(self, *, pick: int, was_about_to_open: bool) -> None:
        """It dies before it wrote `executing`, or between that and the gate, or later.

        A process that has begun lives on.
        """
        supervisor = _one(self.processes(supervised=True), pick).run.supervisor
        for process in self.at_the_gate() if was_about_to_open else []:
            if process.run.supervisor == supervisor:
                self.do("runs.execute", process.run, shim=shim_of(process.run.id))
        self.world.processes.kill(supervisor)

    @precondition(lambda self: self.processes(supervised=False, alive=True))
    @rule(pick=picks, exit_=st.none() | exits)
    def orphan_ends(self, *, pick: int, exit_: Exit | None) -> None:
        """It leaves a result, or its shim is killed, too."""
        orphan = _one(self.processes(supervised=False, alive=True), pick)
        orphan.end(exit_) if exit_ else orphan.vanish()

    @precondition(lambda self: self.processes(supervised=False, alive=True))
    @rule(pick=picks, supervisor=supervisors)
    def orphan_is_adopted(self, *, pick: int, supervisor: str) -> None:
        """Of two who want it, one gets it."""
        orphan = _one(self.processes(supervised=False, alive=True), pick)
        current = self.rows.runs[orphan.run.task_id][-1]
        adopted = self.do("runs.adopt", current, supervisor=self.world.processes.living(supervisor))
        assert isinstance(self.do("runs.adopt", current, supervisor="another"), Refusal)
        orphan.run = adopted

    @precondition(lambda self: self.processes(supervised=False) or self.rows.overdue)
    @rule(is_opened_again=st.booleans())
    def recover(self, *, is_opened_again: bool) -> None:
        """After it, only those are running whose supervisor or process lives."""
        if is_opened_again:
            self.world.reopen()
        recovered = self.do("runs.recover")
        assert not isinstance(recovered, Refusal)
        assert not [process for process in self.processes(supervised=False) if not process.is_alive]
        assert not self.rows.overdue
        assert self.do("runs.recover") == [], "once is enough"

    @rule(milliseconds=st.sampled_from([-86_400_000, -1, 1, 1_000, 86_400_000]))
    def time_passes(self, *, milliseconds: int) -> None:
        """Forwards or backwards; every process but the store's file is gone in between."""
        self.world.reopen(later=milliseconds)

    # --- looking ----------------------------------------------------------------------------------

    @precondition(has_tasks)
    @rule(pick=picks, length=st.sampled_from([1, 2, 26, 26]), by_checkpoint=st.booleans())
    def look(self, *, pick: int, length: int, by_checkpoint: bool) -> None:
        """Both find the same by any prefix, and show the same."""
        task = self.task(pick)
        checkpoints = [run.checkpoint_id for run in self.rows.runs[task.id] if run.checkpoint_id]
        name = _one(checkpoints, pick) if by_checkpoint and checkpoints else task.id
        found = self.do("decisions.find_task", name[:length])
        if length == len(name):
            assert found == task
            stale = self.do("tasks.require_newest", name, task)
            assert isinstance(stale, Refusal) == (name in checkpoints[:-1])
        assert self.do("scene", task.id).task == task

    # --- what is true after every step ------------------------------------------------------------

    @invariant()
    def everything_fits_together(self) -> None:
        invariants.check(self.rows)

    @invariant()
    def nothing_ran_more_often_than_it_was_allowed_to(self) -> None:
        for call_id, times in self.started.items():
            assert times <= 1 + self.allowed_again[call_id], f"{call_id} ran {times} times"

    @invariant()
    def a_reply_is_for_good(self) -> None:
        """C-R14: the first reply wins, and nothing changes it."""
        for ask in self.asks():
            if not ask.is_open:
                assert self.settled.setdefault(ask.id, ask) == ask

    @invariant()
    def only_a_result_or_proof_moves_an_executing_call(self) -> None:
        for task_id, calls in self.before.calls.items():
            for old, new in zip(calls, self.rows.calls.get(task_id, []), strict=False):
                if old.state is CallState.EXECUTING and new.state is not CallState.EXECUTING:
                    assert self.act in MOVES_EXECUTING

    @invariant()
    def what_was_approved_is_what_runs(self) -> None:
        """An approved call's bytes never change again."""
        for task_id, calls in self.before.calls.items():
            for old, new in zip(calls, self.rows.calls.get(task_id, []), strict=False):
                if old.state is not CallState.PENDING:
                    assert (old.body, old.digest, old.nonce) == (new.body, new.digest, new.nonce)

    @invariant()
    def history_only_grows(self) -> None:
        assert [row.seal for row in self.rows.trail[: len(self.before.trail)]] == [
            row.seal for row in self.before.trail
        ]


def _one(things: list[Any], pick: int) -> Any:
    return things[pick % len(things)]

"""A store in memory, a scripted clock, and a process inside a run that asks three questions."""

from collections.abc import Callable
from pathlib import Path

from adjourn.clarifications import exchange, protocol_files
from adjourn.controller import context
from adjourn.controller.controller import Controller
from adjourn.controller.gate import PolicyGate
from adjourn.controller.runs import Claimed
from adjourn.core.ask import Principal, Question, QuestionAsk, Reply, Verb
from adjourn.core.clarification import Context, WorkState
from adjourn.core.outcome import Exit
from adjourn.core.task import ProcessId, Spec, Task
from adjourn.ports.world import ShimState, StartMark, StillRuns
from adjourn.runners.command import CommandRunner
from adjourn.testing.memory_store import MemoryStore
from adjourn.wiring.inside import AskDraft, InsideRun
from tests.authorities import everybody
from tests.stateful.world import Disk, Rulebook

TEN = 1_768_730_400_000  # 2026-01-18T10:00:00Z
ADA = Principal(name="uid:1000")
SHIM = ProcessId(boot_id="boot", pid=7, start_time=1)
DRAFT = AskDraft(
    blocked_at="Supervision pattern selection",
    reason="unclear",
    work_state=WorkState(
        completed=["Read session logs"],
        in_progress=["Implementation"],
        blocked=["Pattern (needs Q1)"],
        parallel_work_available=["Tests"],
    ),
    context=Context(
        session_context={"k": 1}, decisions=["d"], files_created=["a.md"], files_modified=["b.md"]
    ),
    next_phase="implementation",
    estimated_remaining_work="15-20 minutes",
    tokens_burned=12543,
)
QUESTIONS = [Question(key=f"Q{number}", prompt=f"Question {number}?") for number in (1, 2, 3)]


class NoProcesses:
    """Every supervisor lives."""

    def supervisor_lives(self, supervisor: str) -> bool:
        return bool(supervisor)

    def shim_state(self, run_id: str, shim: ProcessId) -> ShimState:
        del run_id, shim
        return StillRuns()

    def start_mark(self, call_id: str, *, place: str) -> StartMark | None:
        del call_id, place
        return None

    def leave_start_mark(self, call_id: str, mark: StartMark) -> None:
        del call_id, mark

    def found_at(self, place: str) -> ShimState:
        del place
        return StillRuns()

    def has_live_run(self, task_id: str) -> bool:  # noqa: ARG002 -- a name of the port
        """Nothing of a damaged task lives here."""
        return False

    def shim_at(self, place: str) -> ProcessId | None:
        del place
        return None


class Scene:
    """One task whose time passes only when somebody sleeps."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.seconds = 0.0
        self.said: list[str] = []
        self.at: dict[float, Callable[[], object]] = {}
        self._refused: list[str] = []
        self._refuse = exchange.report_each_once(self.root, self._refused.append)
        self._ids = 0
        self.controller = Controller(
            context.Context(
                MemoryStore(),
                clock=self.now,
                new_id=self._new_id,
                find_runner=lambda _: CommandRunner(),
                open_processes=NoProcesses,
                open_gate=lambda: PolicyGate(Rulebook(), Disk().look, self.now),
                **everybody(),
            )
        )
        spec = Spec(runner="command", argv=("agent",), workspace=self.root)
        self.task: Task = self.controller.tasks.start(spec, by=ADA)

    def now(self) -> int:
        return TEN + round(self.seconds * 1000)

    def _new_id(self) -> str:
        self._ids += 1
        return f"id{self._ids:024d}"

    def clock_time(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"10:{minutes:02d}:{seconds:02d}"

    def sleep(self, seconds: float) -> bool:
        """Let time pass up to the next thing that was planned, or so many seconds."""
        planned = [moment for moment in self.at if self.seconds < moment <= self.seconds + seconds]
        self.seconds = min(planned, default=self.seconds + seconds)
        if planned:
            self.at.pop(self.seconds)()
        return bool(planned)

    def begin(self) -> InsideRun:
        """Start the task's next run."""
        claimed = self.controller.runs.claim(self.task.id, supervisor="s")
        assert isinstance(claimed, Claimed)
        self.claimed = claimed
        exchange.prepare_run(self.controller, self.root, self.claimed.run, place=self.root)
        self.controller.runs.execute(self.claimed.run, shim=SHIM)
        exchange.announce_resumed(self.controller, self.root, self.claimed.run)
        return InsideRun(
            self.controller,
            root=self.root,
            run_id=self.claimed.run.id,
            clock=lambda: self.seconds,
            wall_clock=self.now,
            sleep=self.sleep,
        )

    def end(self, code: int) -> Task:
        """End the run as a supervisor does."""
        exchange.clear_taken(self.controller, self.root, self.task.id)
        left = protocol_files.read_left(self.root, self.task.id)
        ended = self.controller.runs.finish(self.claimed.run, Exit(code=code, left=left))
        exchange.close_run(self.controller, self.root, ended)
        return ended

    def answer_by_command(self, **answers: str) -> None:
        """Answer as `adjourn answer` does."""
        with self.controller.store.read() as view:
            asks = {
                ask.name: ask.id
                for ask in view.open_asks_of(self.task.id)
                if isinstance(ask, QuestionAsk)
            }
        self.controller.decisions.decide(
            [Reply(ask_id=asks[key], verb=Verb.ANSWER, text=text) for key, text in answers.items()],
            by=ADA,
        )

    def answer_by_file(self, content: str | None = None) -> Path:
        """Put a response where it is looked for."""
        path = Path(protocol_files.response_path(self.root, self.task.id))
        answers = "".join(f"  - question_id: Q{n}\n    answer: answer {n}\n" for n in (1, 2, 3))
        path.write_text(
            content or f"agent_id: {self.task.id}\nresponses:\n{answers}resume_signal: true\n"
        )
        return path

    def look(self) -> list[str]:
        """Look for responses as a worker does, which remembers what it refused; return that."""
        self._refused.clear()
        exchange.take_responses(self.controller, self.root, refuse=self._refuse, patience=5)
        return [*self._refused]

    def state(self) -> str:
        with self.controller.store.read() as view:
            return view.task(self.task.id).state

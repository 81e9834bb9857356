"""What the controller needs of the world, beside the store."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import Rights
from adjourn.core.call import Call, Command
from adjourn.core.outcome import Exit, Outcome, Standing
from adjourn.core.policy.judgement import Effect, Judgement
from adjourn.core.policy.opening import Obstacle, Opening, OwnAsk, Surroundings
from adjourn.core.task import Milliseconds, ProcessId, Spec, Task
from adjourn.core.trail.reason import Grounds
from adjourn.ports.store import Change, View

Clock = Callable[[], Milliseconds]
NewId = Callable[[], str]
# A call and the workspace of its task in; small texts of its files as they are now out, None of a
# file that is not there
CopyTexts = Callable[[Call, str], dict[str, str | None]]
Observe = Callable[[Command], Surroundings]  # a command in; what it depends on, as it is now, out


class Supervisors(Protocol):
    """Knows which supervisors live."""

    def supervisor_lives(self, supervisor: str) -> bool:
        """Return whether that supervisor still holds its lock."""
        ...


class Authoriser(Protocol):
    """Knows who calls, and who has which scopes; somebody unknown has none."""

    def caller(self) -> str:
        """Return the name of the caller, as the channel knows it."""
        ...

    def rights(self, by: Principal) -> Rights:
        """Return what a principal may do; to raise is to deny."""
        ...

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Raise NotAllowed unless the caller is certainly outside of every run of the store.

        To raise is to deny.
        """
        ...

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember where the caller is, unless a run of the store is alive."""
        ...


class ShimState(msgspec.Struct, frozen=True):
    """What can be known of a run's process when its supervisor is gone."""


class StillRuns(ShimState, frozen=True):
    """The shim is alive and holds its lock."""


class NeverStarted(ShimState, frozen=True):
    """The command provably did not start.

    Its gate stayed shut, the machine kept it from starting, or a file was another.
    """

    # What the machine lacked, or which file was another than the one that was let through
    why: str = ""
    # Whether a file was another: the next look finds out which, and asks a person
    is_refused: bool = False
    # Whether somebody was writing its program: it is tried again, but not for ever
    is_busy: bool = False


class Ended(ShimState, frozen=True):
    """The shim left a result."""

    exit: Exit


class Vanished(ShimState, frozen=True):
    """The shim is dead and left no result."""


class StartMark(msgspec.Struct, frozen=True):
    """What this machine keeps of a start, beside the store.

    Where its files are, and which bytes it ran.
    """

    place: str  # a run, or an attempt at a call beside one; empty if that cannot be read
    digest: str  # its first digits; empty if that is not known


class Processes(Supervisors, Protocol):
    """Knows which processes live, and what dead ones left behind."""

    def shim_state(self, run_id: str, shim: ProcessId) -> ShimState:
        """Return the state of a run's shim; once it vanished, nothing of the run is alive."""
        ...

    def start_mark(self, call_id: str, *, place: str) -> StartMark | None:
        """Return what this machine knows of a start of a call.

        Its newest mark, or a result in the place where it would run.
        """
        ...

    def leave_start_mark(self, call_id: str, mark: StartMark) -> None:
        """Keep that a call is started. It is on disk when this returns, or OSError is raised."""
        ...

    def found_at(self, place: str) -> ShimState:
        """Return the state of what was started there, by its files alone."""
        ...

    def has_live_run(self, task_id: str) -> bool:
        """Say whether a shim of the task is alive here, by the files of its runs alone."""
        ...

    def shim_at(self, place: str) -> ProcessId | None:
        """Return the shim that runs, or ran, what was started there, if its files tell."""
        ...


class Runner(Protocol):
    """Knows one kind of process: what a second start would do, and what its exit meant.

    It owns no state and no process. The driver, which is the run's own process, starts or resumes
    the session; the shim interrupts and kills, the same for every kind (decision 0051).
    """

    @property
    def effect(self) -> Effect:
        """What a second start of its own process would do; the policy has no say in it."""
        ...

    @property
    def needs_session(self) -> bool:
        """Whether a resume goes on in a session of the provider's own."""
        ...

    @property
    def makes_calls(self) -> bool:
        """Whether its agent makes the calls that are let through by itself.

        Then nobody makes them beside it.
        """
        ...

    def meaning(self, exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
        """Return what an exit meant."""
        ...


class Gate(Protocol):
    """Judges calls by the policies and the files of this machine.

    What it finds takes effect in the controller.
    """

    def opening(self, spec: Spec) -> Opening:
        """Observe at a new task's command and judge it, or raise BadPolicy.

        Where a policy is wrong, nothing runs.
        """
        ...

    def opening_again(self, view: View, task: Task) -> Opening:
        """Judge the command of a task that goes on.

        By the policy that it began under, and by today's where that is stricter.
        """
        ...

    def look(self, command: Command) -> Surroundings:
        """Return what a command depends on, as it is now."""
        ...

    def judge(self, view: View, task: Task, tool: str, body: bytes) -> Judgement:
        """Return what the policies in force say of a call for which a process asks a person."""
        ...

    def weigh(
        self, view: View, task: Task, tool: str, body: bytes
    ) -> tuple[Judgement, dict[str, str]]:
        """Return what the policies in force say of an agent's call, and the files it depends on."""
        ...

    def directories(self, view: View, task: Task) -> tuple[str, ...]:
        """Return where an agent may read and write beside its workspace.

        Where it might when it began, and still may.
        """
        ...

    def drift(self, view: View, task: Task, call: Call, grounds: Grounds) -> tuple[str, ...]:
        """Return what has changed since an agent's call was let through: its files, or the policy.

        What a rule let through must be let through by a rule now.
        """
        ...

    def effect(self, view: View, task: Task, call: Call) -> Effect:
        """Return what a second run of a command would do; unknown where a policy is wrong."""
        ...

    def own_ask(self, view: View, task: Task, argv: Sequence[str] = ()) -> OwnAsk:
        """Return what becomes part of the ask of a process that wants its own command approved.

        Or `argv`, the command that resumes it.
        """
        ...

    def obstacle(self, view: View, task: Task, call: Call, grounds: Grounds) -> Obstacle | None:
        """Return why a call that was let through may not start now, or None.

        What a rule let through must be let through by a rule now.
        """
        ...


class Signatures(Protocol):
    """Knows whose signatures count."""

    def signer(self, document: bytes, signature: str) -> str:
        """Return who signed these very bytes, and still may, or raise NotAllowed."""
        ...


FindRunner = Callable[[str], Runner]

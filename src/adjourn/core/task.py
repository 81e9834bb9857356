"""A task, and the runs that carry it out."""

from enum import StrEnum

import msgspec

from adjourn.core.states import TaskState


class ProcessId(msgspec.Struct, frozen=True, kw_only=True):
    """One process on one boot of one machine; a reused pid is another one."""

    boot_id: str
    pid: int
    start_time: int  # clock ticks since boot


Milliseconds = int
WHOLE_ID = 26  # characters of an id of a task or an ask
DEFAULT_POOL = "default"
SESSION_RUNNER = "session"  # the runner of a task that only holds a question to people
DEFAULT_GRACE = 5.0  # seconds
TRIES = 3  # starts that do not happen, before a task has failed
# Seconds before the second try of a program that somebody was writing, and before any later one
PAUSES_BETWEEN_TRIES = (10.0, 20.0)


class OnRejection(StrEnum):
    """What a rejected call does to its task."""

    FAIL = "fail"
    TELL = "tell"


class Wish(StrEnum):
    """What somebody asked of a task whose process is still running."""

    PAUSE = "pause"
    CANCEL = "cancel"


class PauseReason(StrEnum):
    """Why a run left before its task ended."""

    TOOL_APPROVAL_REQUIRED = "tool_approval_required"
    INPUT_REQUIRED = "input_required"
    USER_INTERRUPT = "user_interrupt"  # by a person, or by a signal
    UNAVAILABLE = "unavailable"  # a service that the agent needs is away, or refuses
    LIMIT_REACHED = "limit_reached"  # steps, tokens, cost, context, or a loop


class RunState(StrEnum):
    """How a run stands, in the words of the run record."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a task is.

    Only a person changes it, who approves its command with other words or restarts it elsewhere.
    """

    runner: str
    argv: tuple[str, ...]
    workspace: str
    decision_arg: bool = False
    on_rejection: OnRejection = OnRejection.FAIL
    grace: float = DEFAULT_GRACE
    pool: str = DEFAULT_POOL
    expires_after: Milliseconds | None = None
    parent_run: str | None = None
    pause_on_approval: bool = False
    asks_by_exit_code: bool = True  # whether exit codes 10 and 90 without asks ask for approval
    # The words that resume an agent of others by its own checkpoint (core.foreign)
    resume_with: tuple[str, ...] = ()
    policy: str | None = None  # the digest of the policy it was started under
    plan: str | None = None  # the path of the plan that it belongs to
    item: str | None = None  # its id in that plan
    review: bool = False  # when its work is done, a person looks at it before it has succeeded
    prompt: str | None = None  # what a person told an agent to do
    # How an agent was set up, as its runner writes it down: every resume inherits it
    setup: str | None = None

    @property
    def is_driven(self) -> bool:
        """Whether a driver of ours runs it, which has the policy judge each call of its agent."""
        return self.prompt is not None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Work with an id that stays the same however often it pauses."""

    id: str
    spec: Spec
    state: TaskState
    session_id: str
    created_at: Milliseconds
    updated_at: Milliseconds
    version: int = 1
    runs: int = 0
    calls: int = 0
    asks: int = 0
    tries: int = 0
    next_call: int | None = None
    wish: Wish | None = None
    message: str | None = None
    slot: str | None = None

    @property
    def parent_task(self) -> str | None:
        """The task in whose run this one was started, if any."""
        return task_of_run(self.spec.parent_run) if self.spec.parent_run else None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One process, from start to exit. It never starts again."""

    task_id: str
    number: int
    state: RunState
    call: int
    supervisor: str
    created_at: Milliseconds
    updated_at: Milliseconds
    version: int = 1
    session_id: str
    shim: ProcessId | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str | None = None
    checkpoint_id: str | None = None
    paused_at: Milliseconds | None = None
    pause_reason: PauseReason | None = None
    resumed_from: int | None = None
    restart_of: int | None = None
    superseded_by: int | None = None
    session_ref: str | None = None  # the provider's own name of its session
    # Whether the provider can go on from where it left, as its driver saw it
    resumable: bool = False

    @property
    def id(self) -> str:
        """The run's name, unique in the store."""
        return run_id(self.task_id, self.number)


def run_id(task_id: str, number: int) -> str:
    """Name the n-th run of a task."""
    return f"{task_id}.{number}"


def task_of_run(name: str) -> str:
    """Return the task that a run id belongs to."""
    return name.partition(".")[0]


def number_of_run(name: str) -> int:
    """Return which of its task's runs a run id names, or 0 if it names none."""
    number = name.partition(".")[2]
    return int(number) if number.isascii() and number.isdigit() else 0

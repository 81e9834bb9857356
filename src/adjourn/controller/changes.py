"""The fields of records that may change, so that mypy and pyright find a misspelt one.

`msgspec.structs.replace` takes any keyword. The setters of `Transaction` take these instead.
"""

from typing import TypedDict

from adjourn.core.ask import Settlement
from adjourn.core.people import GivenApproval
from adjourn.core.states import TaskState
from adjourn.core.task import Milliseconds, PauseReason, ProcessId, RunState, Spec, Wish


class TaskChanges(TypedDict, total=False):
    """What may change of a task, beside its version and the time of its last change."""

    spec: Spec
    state: TaskState
    session_id: str
    runs: int
    calls: int
    asks: int
    tries: int
    next_call: int | None
    wish: Wish | None
    message: str | None


class RunChanges(TypedDict, total=False):
    """What may change of a run, beside its version and the time of its last change."""

    state: RunState
    supervisor: str
    shim: ProcessId | None
    exit_code: int | None
    signal: int | None
    message: str | None
    checkpoint_id: str | None
    paused_at: Milliseconds | None
    pause_reason: PauseReason | None
    superseded_by: int | None
    session_ref: str | None
    resumable: bool


class CallChanges(TypedDict, total=False):
    """What may change of a call, beside its state and its version."""

    body: bytes
    digest: str
    claimed_by: str | None
    approved_by: str | None
    ask: int | None
    shim: ProcessId | None
    attempt: int


class AskChanges(TypedDict, total=False):
    """What may change of an ask."""

    settlement: Settlement | None
    snoozed_until: Milliseconds | None
    given: tuple[GivenApproval, ...]  # of an approval
    remind_at: Milliseconds | None  # of an approval

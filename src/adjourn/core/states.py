"""The life of a task, of a call and of an ask.

Three tables, and nothing else decides what may happen.
"""

from enum import StrEnum
from typing import TypeVar

from adjourn.core.errors import MoveRefused


class TaskState(StrEnum):
    """Where a task is."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class Move(StrEnum):
    """What can happen to a task."""

    START = "start"
    RETURN = "return"
    COMPLETE = "complete"
    FAIL = "fail"
    WAIT = "wait"
    LOSE = "lose"
    PAUSE = "pause"
    SETTLE = "settle"
    REFUSE = "refuse"
    ACCEPT = "accept"
    RESUME = "resume"
    FOLLOW_UP = "follow_up"
    RESTART = "restart"
    CANCEL = "cancel"


TRANSITIONS: dict[tuple[TaskState, Move], TaskState] = {
    (TaskState.QUEUED, Move.START): TaskState.RUNNING,
    (TaskState.QUEUED, Move.PAUSE): TaskState.PAUSED,
    (TaskState.QUEUED, Move.CANCEL): TaskState.CANCELED,
    # It can never be started: its workspace is gone
    (TaskState.QUEUED, Move.FAIL): TaskState.FAILED,
    (TaskState.QUEUED, Move.RESTART): TaskState.QUEUED,
    (TaskState.RUNNING, Move.RETURN): TaskState.QUEUED,  # its call provably did not start
    (TaskState.RUNNING, Move.COMPLETE): TaskState.SUCCEEDED,
    (TaskState.RUNNING, Move.FAIL): TaskState.FAILED,
    (TaskState.RUNNING, Move.WAIT): TaskState.WAITING,
    # Its asks were settled before the process left
    (TaskState.RUNNING, Move.SETTLE): TaskState.QUEUED,
    # Asks a person; never starts again by itself
    (TaskState.RUNNING, Move.LOSE): TaskState.WAITING,
    (TaskState.RUNNING, Move.PAUSE): TaskState.PAUSED,
    (TaskState.RUNNING, Move.CANCEL): TaskState.CANCELED,
    (TaskState.WAITING, Move.SETTLE): TaskState.QUEUED,
    (TaskState.WAITING, Move.REFUSE): TaskState.FAILED,
    (TaskState.WAITING, Move.ACCEPT): TaskState.SUCCEEDED,
    # An uncertain call did not run; going on is a person's choice
    (TaskState.WAITING, Move.PAUSE): TaskState.PAUSED,
    (TaskState.WAITING, Move.RESTART): TaskState.QUEUED,
    (TaskState.WAITING, Move.CANCEL): TaskState.CANCELED,
    (TaskState.PAUSED, Move.RESUME): TaskState.QUEUED,
    (TaskState.PAUSED, Move.RESTART): TaskState.QUEUED,
    (TaskState.PAUSED, Move.CANCEL): TaskState.CANCELED,
    # A person has more to say to an agent that was done
    (TaskState.SUCCEEDED, Move.FOLLOW_UP): TaskState.QUEUED,
    (TaskState.SUCCEEDED, Move.RESTART): TaskState.QUEUED,
    (TaskState.FAILED, Move.RESTART): TaskState.QUEUED,
    (TaskState.CANCELED, Move.RESTART): TaskState.QUEUED,
}

ENDED = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELED})
UNFINISHED = (TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED)


class CallState(StrEnum):
    """What has become of a tool call."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CLAIMED = "claimed"
    EXECUTING = "executing"
    DONE = "done"
    FAILED = "failed"
    UNCERTAIN = "uncertain"


class CallMove(StrEnum):
    """What can happen to a tool call."""

    APPROVE = "approve"
    REJECT = "reject"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"
    CLAIM = "claim"
    EXECUTE = "execute"
    RELEASE = "release"
    FINISH = "finish"
    FAIL = "fail"
    LOSE = "lose"
    IT_RAN = "it_ran"
    IT_DID_NOT = "it_did_not"
    RUN_AGAIN = "run_again"


CALL_TRANSITIONS: dict[tuple[CallState, CallMove], CallState] = {
    (CallState.PENDING, CallMove.APPROVE): CallState.APPROVED,
    (CallState.PENDING, CallMove.REJECT): CallState.REJECTED,
    (CallState.PENDING, CallMove.EXPIRE): CallState.EXPIRED,
    (CallState.PENDING, CallMove.WITHDRAW): CallState.WITHDRAWN,
    (CallState.APPROVED, CallMove.CLAIM): CallState.CLAIMED,
    (CallState.APPROVED, CallMove.WITHDRAW): CallState.WITHDRAWN,
    (CallState.CLAIMED, CallMove.EXECUTE): CallState.EXECUTING,
    # Its claim holder is gone: the gate stayed shut
    (CallState.CLAIMED, CallMove.RELEASE): CallState.APPROVED,
    (CallState.CLAIMED, CallMove.FAIL): CallState.FAILED,  # interrupted before the gate opened
    # The shim says that it never started
    (CallState.EXECUTING, CallMove.RELEASE): CallState.APPROVED,
    (CallState.EXECUTING, CallMove.FINISH): CallState.DONE,
    (CallState.EXECUTING, CallMove.FAIL): CallState.FAILED,
    (CallState.EXECUTING, CallMove.LOSE): CallState.UNCERTAIN,
    (CallState.UNCERTAIN, CallMove.IT_RAN): CallState.DONE,
    (CallState.UNCERTAIN, CallMove.IT_DID_NOT): CallState.FAILED,
    (CallState.UNCERTAIN, CallMove.RUN_AGAIN): CallState.APPROVED,
}


class AskState(StrEnum):
    """Whether an ask still needs a person."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    ANSWERED = "answered"
    SETTLED = "settled"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class AskMove(StrEnum):
    """What can happen to an ask."""

    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"
    SETTLE = "settle"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"


ASK_TRANSITIONS: dict[tuple[AskState, AskMove], AskState] = {
    (AskState.PENDING, AskMove.APPROVE): AskState.APPROVED,
    (AskState.PENDING, AskMove.REJECT): AskState.REJECTED,
    (AskState.PENDING, AskMove.ANSWER): AskState.ANSWERED,
    (AskState.PENDING, AskMove.SETTLE): AskState.SETTLED,
    (AskState.PENDING, AskMove.EXPIRE): AskState.EXPIRED,
    (AskState.PENDING, AskMove.WITHDRAW): AskState.WITHDRAWN,
    # What it approved is not what would run any more
    (AskState.APPROVED, AskMove.WITHDRAW): AskState.WITHDRAWN,
}

State = TypeVar("State", bound=StrEnum)
AnyMove = TypeVar("AnyMove", bound=StrEnum)


def after(state: TaskState, move: Move) -> TaskState:
    """Return the state that `move` leads a task to, or refuse it."""
    return _look_up(TRANSITIONS, state, move, thing="task")


def call_after(state: CallState, move: CallMove) -> CallState:
    """Return the state that `move` leads a call to, or refuse it."""
    return _look_up(CALL_TRANSITIONS, state, move, thing="call")


def ask_after(state: AskState, move: AskMove) -> AskState:
    """Return the state that `move` leads an ask to, or refuse it."""
    return _look_up(ASK_TRANSITIONS, state, move, thing="ask")


def allows(state: TaskState, move: Move) -> bool:
    """Say whether the table has the move."""
    return (state, move) in TRANSITIONS


def allows_ask(state: AskState, move: AskMove) -> bool:
    """Say whether an ask can make the move."""
    return (state, move) in ASK_TRANSITIONS


def _look_up(
    table: dict[tuple[State, AnyMove], State], state: State, move: AnyMove, *, thing: str
) -> State:
    try:
        return table[state, move]
    except KeyError:
        sentence = f"a {thing} that is {state} cannot {move.replace('_', ' ')}"
        raise MoveRefused(sentence) from None

"""What becomes of the tasks of a store that may lack its newest past.

What may have run is asked about, never started.
"""

from collections.abc import Container

import msgspec

from adjourn.controller import endings
from adjourn.controller.transaction import ADJOURN, Asked, Steps
from adjourn.core.ask import LATER, Ask, AskKind
from adjourn.core.call import Call
from adjourn.core.states import AskMove, CallMove, CallState, Move, TaskState, after
from adjourn.core.task import Run, Task

_SUPERVISOR = "restored"
_UNFINISHED = (TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED)
_LET_THROUGH = (CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING)


class Doubts(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of the unfinished tasks of a store."""

    uncertain: tuple[str, ...]  # tasks with a call that may have run
    asked_again: tuple[str, ...]  # tasks with an approval that is asked for again
    paused: tuple[str, ...]


def doubt_unfinished(step: Steps, *, ended: Container[str] = ()) -> Doubts:
    """Take back every approval that is not used up: its call may have run where this store does not know of it.

    A run with a lease is taken from its supervisor only after that is over, except for those that are known to have ended.
    What was about to run, or ran, becomes uncertain: a person says what became of it. What waits for an approval is asked
    for again, with that said. Nothing is left that would start without a person.
    """
    uncertain: list[str] = []
    asked_again: list[str] = []
    paused: list[str] = []
    for task in step.tx.tasks(states=_UNFINISHED, limit=-1):
        match task.state:
            case TaskState.QUEUED | TaskState.RUNNING:
                _lose(step, task, ended)
                uncertain.append(task.id)
            case TaskState.WAITING:
                if _doubt_approved(step, task):
                    uncertain.append(task.id)
                if _ask_again(step, task):
                    asked_again.append(task.id)
            case _:
                step.withdraw_calls(task)
                paused.append(task.id)
    return Doubts(uncertain=tuple(uncertain), asked_again=tuple(asked_again), paused=tuple(paused))


def _lose(step: Steps, task: Task, ended: Container[str]) -> None:
    """End the run of a task, or the one that would have begun, as one that nobody saw end."""
    if task.state is TaskState.QUEUED:
        run = step.new_run(task, call=task.next_call or 0, supervisor=_SUPERVISOR)
        task = step.save(task, state=after(task.state, Move.START), runs=run.number)
        step.tell(task.id, "run_claimed", run=run.number, call=run.call)
    else:
        run = step.tx.run(task.id, task.runs)
        step.tx.wrest(run, only_if_over=run.id not in ended)
    for call in _let_through(step, task):
        _hand_out(step, run, call)
    # A database that checks each move must see that it was handed out before it is lost
    step.tx.flush()
    endings.lose(step, step.tx.task(task.id), run)


def _let_through(step: Steps, task: Task) -> list[Call]:
    return [call for state in _LET_THROUGH for call in step.tx.calls_in(task.id, state)]


def _hand_out(step: Steps, run: Run, call: Call) -> Call:
    """Bring a call that was let through to where it counts as started by this run."""
    if call.state is CallState.APPROVED:
        call = step.move(call, CallMove.CLAIM, claimed_by=run.id)
    if call.state is CallState.CLAIMED:
        call = step.move(call, CallMove.EXECUTE)
    if call.claimed_by == run.id:
        return call
    mine = msgspec.structs.replace(call, claimed_by=run.id, version=call.version + 1)
    step.tx.save_call(call, mine)
    return mine


def _doubt_approved(step: Steps, task: Task) -> bool:
    """Ask about the calls of a waiting task that were approved already.

    A script is told that its own was handed out.
    """
    calls = _let_through(step, task)
    run = step.tx.run(task.id, task.runs)
    if not task.spec.is_driven:
        step.withdraw_calls(task)
        return bool(calls)
    for call in calls:
        handed_out = _hand_out(step, run, call)
        step.tx.flush()
        lost = step.move(handed_out, CallMove.LOSE)
        endings.ask_about(step, step.tx.task(task.id), run, lost)
    return bool(calls)


def _ask_again(step: Steps, task: Task) -> bool:
    """Put open approvals before a person once more, under new ids.

    Decisions on the old ones were made without knowing.
    """
    asks = [
        ask for ask in step.tx.open_asks_of(task.id) if ask.kind is AskKind.APPROVAL and ask.call
    ]
    for ask in asks:
        _reopen(step, ask)
    return bool(asks)


def _reopen(step: Steps, ask: Ask) -> None:
    task = step.tx.task(ask.task_id)
    call = step.tx.call(task.id, ask.call or 0)
    what = Asked(
        prompt=f"{LATER}; {ask.prompt}", choices=ask.choices, manifest=ask.manifest, gate=ask.gate
    )
    # Approving all at once is no look
    what["terms"] = msgspec.structs.replace(ask.terms, by_name=True)
    what["label"], what["replaces"] = ask.label, ask.id
    what["call"] = call.number
    if ask.key is not None:
        what["key"] = ask.key
    if ask.slot is not None:
        what["slot"] = ask.slot
    expires_after = ask.expires_at - ask.created_at if ask.expires_at else None
    run = step.tx.run(task.id, ask.run)
    opened, _ = step.open_ask(task, run, AskKind.APPROVAL, expires_after=expires_after, **what)
    step.settle_ask(ask, AskMove.WITHDRAW, text=f"replaced by {opened.id}", by=ADJOURN)
    step.tx.save_call(
        call, msgspec.structs.replace(call, ask=opened.number, version=call.version + 1)
    )

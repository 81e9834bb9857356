"""What happens to the tasks of a store that may lack its newest past.

What may have run is asked about, never started.
"""

from collections.abc import Container

import msgspec

from adjourn.controller import endings
from adjourn.controller.transaction import ADJOURN, Transaction, call_to_run
from adjourn.core.ask import LATER, ApprovalAsk
from adjourn.core.call import Call
from adjourn.core.kept_documents import WHY
from adjourn.core.states import UNFINISHED, AskMove, CallMove, CallState, Move, TaskState, after
from adjourn.core.task import Run, Task

_SUPERVISOR = "restored"
_LET_THROUGH = (CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING)


class Doubts(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of the unfinished tasks of a store."""

    uncertain: tuple[str, ...]  # tasks with a call that may have run
    asked_again: tuple[str, ...]  # tasks with an approval that is asked for again
    paused: tuple[str, ...]


def doubt_unfinished(tx: Transaction, *, ended: Container[str] = ()) -> Doubts:
    """Take back every unused approval: its call may have run without this store knowing.

    A run with a lease is taken from its supervisor only after that is over, unless it is known to
    have ended. What was about to run, or ran, becomes uncertain: a person says whether it ran.
    What waits for an approval is asked for again, with that said. Nothing is left that would start
    without a person.
    """
    uncertain: list[str] = []
    asked_again: list[str] = []
    paused: list[str] = []
    for task in tx.rows.tasks(states=UNFINISHED, limit=-1):
        match task.state:
            case TaskState.QUEUED | TaskState.RUNNING:
                _lose(tx, task, ended)
                uncertain.append(task.id)
            case TaskState.WAITING:
                if _doubt_approved(tx, task):
                    uncertain.append(task.id)
                if _ask_again(tx, task):
                    asked_again.append(task.id)
            case _:
                tx.withdraw_calls(task)
                paused.append(task.id)
    return Doubts(uncertain=tuple(uncertain), asked_again=tuple(asked_again), paused=tuple(paused))


def _lose(tx: Transaction, task: Task, ended: Container[str]) -> None:
    """End the run of a task, or the one that would have begun, as one that nobody saw end."""
    if task.state is TaskState.QUEUED:
        run = tx.new_run(task, call=call_to_run(tx.rows, task).number, supervisor=_SUPERVISOR)
        task = tx.save(task, state=after(task.state, Move.START), runs=run.number)
        tx.tell(task.id, "run_claimed", run=run.number, call=run.call)
    else:
        run = tx.rows.run(task.id, task.runs)
        tx.rows.take_over(run, only_if_over=run.id not in ended)
    for call in _let_through(tx, task):
        _hand_out(tx, run, call)
    # A database that checks each move must see that it was handed out before it is lost
    tx.rows.flush()
    endings.lose(tx, tx.rows.task(task.id), run)


def _let_through(tx: Transaction, task: Task) -> list[Call]:
    return [call for state in _LET_THROUGH for call in tx.rows.calls_in(task.id, state)]


def _hand_out(tx: Transaction, run: Run, call: Call) -> Call:
    """Bring a call that was let through to where it counts as started by this run."""
    if call.state is CallState.APPROVED:
        call = tx.move(call, CallMove.CLAIM, claimed_by=run.id)
    if call.state is CallState.CLAIMED:
        call = tx.move(call, CallMove.EXECUTE)
    if call.claimed_by == run.id:
        return call
    return tx.save_call(call, claimed_by=run.id)


def _doubt_approved(tx: Transaction, task: Task) -> bool:
    """Ask about the calls of a waiting task that were approved already.

    A script is told that its own was handed out.
    """
    calls = _let_through(tx, task)
    run = tx.rows.run(task.id, task.runs)
    if not task.spec.is_driven:
        tx.withdraw_calls(task)
        return bool(calls)
    for call in calls:
        handed_out = _hand_out(tx, run, call)
        tx.rows.flush()
        lost = tx.move(handed_out, CallMove.LOSE)
        endings.ask_about(tx, tx.rows.task(task.id), run, lost)
    return bool(calls)


def _ask_again(tx: Transaction, task: Task) -> bool:
    """Put open approvals before a person once more, under new ids.

    Decisions on the old ones were made without knowing.
    """
    asks = [ask for ask in tx.rows.open_asks_of(task.id) if isinstance(ask, ApprovalAsk)]
    for ask in asks:
        _reopen(tx, ask)
    return bool(asks)


def _reopen(tx: Transaction, ask: ApprovalAsk) -> None:
    task = tx.rows.task(ask.task_id)
    call = tx.rows.call(task.id, ask.call)
    opened, _ = tx.open_approval(
        task,
        tx.rows.run(task.id, ask.run),
        call.number,
        prompt=f"{LATER}; {ask.prompt}",
        label=ask.label,
        key=ask.key,
        slot=ask.slot,
        manifest=ask.manifest,
        gate=ask.gate,
        # Approving all at once is no look
        terms=msgspec.structs.replace(ask.terms, by_name=True),
        replaces=ask.id,
        expires_after=ask.expires_at - ask.created_at if ask.expires_at else None,
        remind_after=ask.remind_at - ask.created_at if ask.remind_at else None,
        escalate_to=ask.escalate_to,
    )
    if why := WHY.of(ask.id).read(tx.rows, task.id):
        WHY.of(opened.id).keep(tx.rows, task.id, why)
    tx.settle_ask(ask, AskMove.WITHDRAW, text=f"replaced by {opened.id}", by=ADJOURN)
    tx.save_call(call, ask=opened.number)

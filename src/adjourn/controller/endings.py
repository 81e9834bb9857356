"""How the end of a run changes its task."""

from typing import Unpack

from adjourn.controller.standing import note_reach
from adjourn.controller.transaction import (
    ADJOURN,
    ApprovalDetails,
    Transaction,
    approved_command,
    is_blocked,
)
from adjourn.core.ask import RESUME_KEY, ApprovalAsk, AskReason
from adjourn.core.call import COMMAND, DEFAULT_VALUE, Call, Command
from adjourn.core.foreign import read_pause, resume_argv
from adjourn.core.kept_documents import NOT_MADE, WHY
from adjourn.core.outcome import Completed, Failed, Interrupted, Outcome, Waits, WantsApproval
from adjourn.core.policy.opening import OwnAsk
from adjourn.core.states import AskState, CallMove, CallState, Move, TaskState, after
from adjourn.core.task import OnRejection, PauseReason, Run, RunState, Task, Wish

_RUN_STATES = {
    Move.COMPLETE: RunState.SUCCEEDED,
    Move.FAIL: RunState.FAILED,
    Move.RETURN: RunState.FAILED,
    Move.WAIT: RunState.WAITING,
    Move.LOSE: RunState.WAITING,
    Move.SETTLE: RunState.WAITING,
    Move.PAUSE: RunState.PAUSED,
    Move.CANCEL: RunState.CANCELED,
}

_EVENTS = {
    Move.COMPLETE: "run_completed",
    Move.FAIL: "run_failed",
    Move.RETURN: "run_returned",
    Move.WAIT: "run_waiting",
    Move.LOSE: "run_lost",
    Move.SETTLE: "run_settled",
    Move.PAUSE: "run_paused",
    Move.CANCEL: "run_canceled",
}


def conclude(tx: Transaction, task: Task, run: Run, outcome: Outcome, own: OwnAsk) -> Task:
    """Apply what a run's exit meant."""
    wants_review = isinstance(outcome, Completed) and task.spec.review
    is_left_open = isinstance(outcome, Waits | WantsApproval) or wants_review
    if task.wish is Wish.CANCEL and is_left_open:
        outcome = Interrupted()  # it left by itself, but nobody wants it back
    # A call of an agent may have run while nobody saw it end: a person says whether it ran. Of
    # one that its agent was told to stop, and stopped, it is known that it has failed. A program
    # closes its own calls, unless it was killed while it made one.
    if task.spec.is_driven or isinstance(outcome, Failed):
        handed_out = any(
            call.claimed_by == run.id for call in tx.rows.calls_in(task.id, CallState.EXECUTING)
        )
        is_stopped = isinstance(outcome, Interrupted) and not outcome.died
        if tx.rows.calls_in(task.id, CallState.UNCERTAIN) or (handed_out and not is_stopped):
            tx.move_call(task.id, run.call, CallMove.FINISH)
            close_calls(tx, task, run, CallMove.LOSE)
            for call in tx.rows.calls_in(task.id, CallState.UNCERTAIN):
                task = ask_about(tx, task, run, call)
            doubt, pause = "nobody saw how a call ended", PauseReason.INPUT_REQUIRED
            return end_run(tx, task, run, Move.LOSE, reason=pause, message=doubt)

    close_calls(tx, task, run, CallMove.FINISH if isinstance(outcome, Completed) else CallMove.FAIL)
    match outcome:
        case Completed(message=message):
            _withdraw_unmade(tx, task, run)
            tx.move_call(task.id, run.call, CallMove.FINISH)
            if not task.spec.review:
                return end_run(tx, task, run, Move.COMPLETE, message=message)
            return _ask_for_review(tx, task, run, message=message)
        case Failed(reason=reason):
            tx.withdraw_asks(task)
            _withdraw_unmade(tx, task, run)
            tx.move_call(task.id, run.call, CallMove.FAIL)
            return end_run(tx, task, run, Move.FAIL, message=reason)
        case Waits():
            tx.move_call(task.id, run.call, CallMove.FINISH)
            return _wait(tx, task, run)
        case WantsApproval(manifest=manifest, last_lines=last_lines):
            tx.move_call(task.id, run.call, CallMove.FINISH)
            it_ran = f"it ran and left with exit code {run.exit_code}, which asks for approval"
            why = AskReason(reasons=(*own.reasons, it_ran), last_lines=last_lines)
            command = approved_command(task.spec, DEFAULT_VALUE, files=own.files)
            if task.spec.resume_with and (left := read_pause(manifest)):
                resuming = f"--resume-with resumes it at its own checkpoint {left.checkpoint_id}"
                why = AskReason(reasons=(*why.reasons, resuming), last_lines=last_lines)
                argv = resume_argv(task.spec.resume_with, left)
                command = Command(argv=argv, cwd=task.spec.workspace, files=own.files)
                return ask_for_approval(
                    tx,
                    task,
                    run,
                    command,
                    prompt=f"exit code {run.exit_code}",
                    why=why,
                    key=RESUME_KEY,
                    manifest=manifest,
                    terms=own.terms,
                    expires_after=own.expires_after,
                )
            return ask_for_approval(
                tx,
                task,
                run,
                command,
                prompt=f"exit code {run.exit_code}",
                why=why,
                manifest=manifest,
                terms=own.terms,
                expires_after=own.expires_after,
                remind_after=own.remind_after,
                escalate_to=own.escalate_to,
            )
        case Interrupted(reason=reason, cause=cause):
            return interrupt(tx, task, run, message=reason, cause=cause)


def close_calls(tx: Transaction, task: Task, run: Run, move: CallMove) -> list[Call]:
    """End the calls that were handed out to a run's own process, when that is gone."""
    handed_out = [
        call for call in tx.rows.calls_in(task.id, CallState.EXECUTING) if call.claimed_by == run.id
    ]
    return [tx.move(call, move) for call in handed_out]


def _withdraw_unmade(tx: Transaction, task: Task, run: Run) -> None:
    """Take back what was approved and never made, and record each call in the trail."""
    approved = tx.rows.calls_in(task.id, CallState.APPROVED)
    unmade = [call for call in approved if call.tool != COMMAND]
    tx.withdraw_calls(task)
    for call in unmade:
        tx.tell(task.id, "call_not_made", run=run.number, call=call.number, digest=call.digest)
    if unmade:
        earlier = NOT_MADE.read(tx.rows, task.id) or []
        NOT_MADE.keep(tx.rows, task.id, [*earlier, *(call.number for call in unmade)])


def ask_about(tx: Transaction, task: Task, run: Run, call: Call) -> Task:
    """Ask a person whether a call of an agent ran that nobody saw end."""
    prompt = f"{call.tool_call_id}, {call.tool}, was started and nobody saw it end: did it run?"
    return tx.open_uncertain(task, run, call.number, prompt=prompt, label=call.label)


def _wait(tx: Transaction, task: Task, run: Run) -> Task:
    expired = next(
        (ask for ask in tx.rows.asks_of_run(task.id, run.number) if ask.state is AskState.EXPIRED),
        None,
    )
    if expired and task.spec.on_rejection is OnRejection.FAIL:
        tx.withdraw_asks(task)
        return end_run(tx, task, run, Move.FAIL, message="nobody settled it in time")
    if is_blocked(tx.rows, task):
        asks = tx.rows.open_asks_of(task.id)
        approvals = any(isinstance(ask, ApprovalAsk) for ask in asks)
        reason = PauseReason.TOOL_APPROVAL_REQUIRED if approvals else PauseReason.INPUT_REQUIRED
        # One that waits for other tasks only has no reason of its own: theirs count
        return end_run(tx, task, run, Move.WAIT, reason=reason if asks else None)
    if task.wish is Wish.PAUSE:  # it left by itself, but going on is for a person to say
        return end_run(tx, task, run, Move.PAUSE, reason=PauseReason.USER_INTERRUPT)
    call = tx.find_or_make_next_call(task, by=ADJOURN)
    return end_run(tx, task, run, Move.SETTLE, reason=PauseReason.INPUT_REQUIRED, next_call=call)


def ask_for_approval(
    tx: Transaction,
    task: Task,
    run: Run,
    command: Command,
    *,
    prompt: str,
    why: AskReason,
    expires_after: int | None,
    remind_after: int | None = None,
    **details: Unpack[ApprovalDetails],
) -> Task:
    """End a run by asking whether this command may run; the ask says first why it is asked."""
    call = tx.new_call(task, command, state=CallState.PENDING, by=None, ask=task.asks + 1)
    counted = tx.save(task, calls=call.number)
    ask, asked = tx.open_approval(
        counted,
        run,
        call.number,
        prompt=prompt,
        expires_after=expires_after,
        remind_after=remind_after,
        **details,
    )
    WHY.of(ask.id).keep(tx.rows, task.id, why)
    return end_run(tx, asked, run, Move.WAIT, reason=PauseReason.TOOL_APPROVAL_REQUIRED)


def _ask_for_review(tx: Transaction, task: Task, run: Run, *, message: str | None) -> Task:
    """End a run whose work is done by asking whether it is good."""
    # Loaded here: most work is not reviewed, and resuming is a hot path
    from adjourn.core.review import CHOICES, REVIEW

    prompt = f"is the work of {task.spec.item or task.id} good?"
    _, asked = tx.open_question(task, run, prompt=prompt, key=REVIEW, choices=CHOICES, review=True)
    return end_run(tx, asked, run, Move.WAIT, reason=PauseReason.INPUT_REQUIRED, message=message)


def interrupt(
    tx: Transaction,
    task: Task,
    run: Run,
    *,
    message: str | None = None,
    cause: PauseReason = PauseReason.USER_INTERRUPT,
) -> Task:
    """End a run that was told to stop, or cannot go on for now; its approval is spent."""
    tx.withdraw_asks(task)
    tx.move_call(task.id, run.call, CallMove.FAIL)
    if task.wish is Wish.CANCEL:
        return end_run(tx, task, run, Move.CANCEL, message="canceled")
    return end_run(tx, task, run, Move.PAUSE, reason=cause, message=message)


def release(tx: Transaction, task: Task, run: Run, *, why: str) -> Task:
    """Give back a run whose call provably did not start."""
    if task.wish:
        return interrupt(tx, task, run)
    call = tx.move_call(task.id, run.call, CallMove.RELEASE)
    return end_run(tx, task, run, Move.RETURN, message=why, next_call=call)


def fail_to_start(tx: Transaction, task: Task, run: Run, *, why: str, tries: int) -> Task:
    """Give back a run that could not be started, or fail its task after the last try."""
    if task.tries + 1 < tries or task.wish:
        return release(tx, tx.save(task, tries=task.tries + 1), run, why=why)
    tx.move_call(task.id, run.call, CallMove.FAIL)
    message = f"it could not be started in {tries} tries: {why}"
    return end_run(tx, task, run, Move.FAIL, message=message)


def lose(tx: Transaction, task: Task, run: Run, *, proof: str = "") -> Task:
    """Ask a person whether a call ran whose process vanished without a result."""
    tx.withdraw_asks(task)
    tx.move_call(task.id, run.call, CallMove.LOSE)
    lost = close_calls(tx, task, run, CallMove.LOSE)
    prompt = f"run {run.number} ended without a trace: did its command run to the end?"
    if proof:
        prompt = (
            f"it was started before the store was set back, as {proof}, and left no result:"
            " did it run to the end?"
        )
    prompt += "".join(f" It had begun {call.tool_call_id}, {call.tool}." for call in lost)
    asked = tx.open_uncertain(task, run, run.call, prompt=prompt)
    message, reason = "lost without a trace", PauseReason.INPUT_REQUIRED
    return end_run(tx, asked, run, Move.LOSE, reason=reason, message=message)


def end_run(
    tx: Transaction,
    task: Task,
    run: Run,
    move: Move,
    *,
    reason: PauseReason | None = None,
    message: str | None = None,
    next_call: Call | None = None,
) -> Task:
    """Close a run and move its task. What it is to run next is told with its digest."""
    if task.spec.is_driven:
        note_reach(tx, task, run)
    is_left = reason is not None or move is Move.WAIT
    tx.save_run(
        run,
        state=_RUN_STATES[move],
        shim=None,
        message=message,
        checkpoint_id=tx.new_id() if is_left or move is Move.COMPLETE else None,
        paused_at=tx.now if is_left else None,
        pause_reason=reason,
    )
    ended = tx.save(
        task,
        state=after(task.state, move),
        message=message,
        wish=None,
        next_call=next_call.number if next_call else None,
        tries=task.tries if move is Move.RETURN else 0,
        calls=max(task.calls, next_call.number if next_call else 0),
    )
    if ended.state is TaskState.PAUSED:
        tx.hold_plan(ended)
    tx.tell(
        ended.id,
        _EVENTS[move],
        run=run.number,
        exit_code=run.exit_code,
        signal=run.signal,
        call=next_call.number if next_call else None,
        digest=next_call.digest if next_call else None,
        new=1 if next_call and next_call.number > task.calls else None,
    )
    tx.wake_parent(ended)
    return ended

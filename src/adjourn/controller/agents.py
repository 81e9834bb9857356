"""What drivers and supervisors do for agents.

Calls are put before the policy, each runs once, and what came of it is kept.
"""

from collections.abc import Sequence

import msgspec

from adjourn.controller import asks, batches
from adjourn.controller.context import Context
from adjourn.controller.reasons import Reasons, tell_start
from adjourn.controller.standing import spent_before
from adjourn.controller.transaction import Transaction
from adjourn.core.agent.calls import CallResult, Held, Proposed, Report, cut
from adjourn.core.call import COMMAND, Call
from adjourn.core.errors import AlreadyDone, NotAllowed
from adjourn.core.kept_documents import BATCH, REPORT, RESULT
from adjourn.core.outcome import Exit
from adjourn.core.policy.judgement import Judgement
from adjourn.core.policy.opening import Way, way_of
from adjourn.core.states import CallMove, CallState
from adjourn.core.task import TRIES, ProcessId, Run, Task, number_of_run, task_of_run
from adjourn.core.trail.reason import Grounds, NoReason, Reason, is_known
from adjourn.ports.store import View
from adjourn.ports.world import (
    Ended,
    NeverStarted,
    Processes,
    ShimState,
    StartMark,
    StillRuns,
    Vanished,
)

UNMARKED = "its start could not be marked on disk"
_UNDER_WAY = (CallState.CLAIMED, CallState.EXECUTING)

# What the policy says of a call now, the files that it depends on, and what has changed
Drift = tuple[Judgement, dict[str, str], tuple[str, ...]]


class ForgottenStart(msgspec.Struct, frozen=True):
    """Where a call was started that the store does not know as started, and how it ended.

    A store that was restored from a backup has forgotten what started since. Nothing may run twice,
    so every start leaves a mark on this machine, and every claim compares the marks with the trail.
    """

    place: str
    state: ShimState


class Agents:
    """Applies the rules to the calls of agents."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reasons = Reasons(context)

    # --- what an agent wants to call --------------------------------------------------------------

    def propose_batch(self, run_id: str, batch: Sequence[Proposed]) -> list[Held]:
        """Write down all calls of one answer of the model.

        Which run, which wait for a person, and which never may.
        """
        gate = self._context.gate
        with self._context.store.read() as view:
            task = view.task(task_of_run(run_id))
            weighed = [(one, *gate.weigh(view, task, one.tool, one.body)) for one in batch]
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            batches.hold(tx, task, run, weighed)
            return batches.held(tx.rows, task.id)

    def batch(self, task_id: str) -> list[Held]:
        """Return the newest batch of a task as it stands."""
        with self._context.store.read() as view:
            return batches.held(view, task_id)

    def held_call(self, task_id: str, tool_call_id: str) -> Held | None:
        """Return a call of an agent by its name, as it stands."""
        with self._context.store.read() as view:
            call = view.call_labelled(task_id, tool_call_id)
            return batches.held_call(view, call) if call else None

    def lets_run(self, task_id: str, proposed: Proposed) -> bool:
        """Return whether a call would run without asking anybody; nothing is written down."""
        with self._context.store.read() as view:
            task = view.task(task_id)
            judgement, _ = self._context.gate.weigh(view, task, proposed.tool, proposed.body)
            return (
                batches.is_just_made(proposed, judgement)
                or way_of(judgement, is_gated=task.spec.pause_on_approval) is Way.RUN
            )

    def directories(self, task_id: str) -> tuple[str, ...]:
        """Return where an agent may read and write outside its workspace."""
        with self._context.store.read() as view:
            return self._context.gate.directories(view, view.task(task_id))

    # --- calls that an agent makes itself ---------------------------------------------------------

    def hand_out(self, run_id: str, call: Call) -> Call | None:
        """Let an agent make an approved call, once.

        None: it is not what was approved any more, and a person is asked again.
        """
        found, drift = self._check_start(call, place=run_id)
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            current = tx.rows.call(task.id, call.number)
            if current.state is not CallState.APPROVED:
                raise AlreadyDone(
                    f"call {call.id} is {current.state}: it was handed out before",
                    way_out=f"adjourn show {task.id}",
                )
            if found:
                # Its agent would have made it: no file of ours says how it ended
                claimed = tx.move(current, CallMove.CLAIM, claimed_by=run.id)
                _settle_forgotten(tx, run, claimed, ForgottenStart(found.place, Vanished()))
            elif drift:
                _ask_again(tx, run, current, drift)
                return None
            else:
                reason = self._reasons.verify_again(tx.rows, current)
                if isinstance(reason, NoReason):
                    raise NotAllowed(
                        f"call {call.id} may not start: {reason.why}",
                        way_out=f"adjourn show {task.id}",
                    )
                current = asks.hand_out(tx, run, current, reason)
        if found:
            raise AlreadyDone(
                f"call {call.id} was started before the store was set back:"
                " whether it ran to its end, a person has to say",
                way_out=f"adjourn show {task.id}",
            )
        try:
            self.mark_start(current, run_id)
        except OSError as error:
            failed = CallResult(ok=False, error=f"{UNMARKED}: {error.strerror}")
            self.close_handed_out(run_id, current, failed)
            raise NotAllowed(
                f"call {call.id} may not start: {UNMARKED}", way_out="adjourn doctor"
            ) from error
        return current

    def close_handed_out(self, run_id: str, call: Call, result: CallResult) -> None:
        """Record how a call of an agent ended, as its driver reports it."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            _close(tx, run, tx.rows.call(task.id, call.number), result)

    # --- calls that a supervisor runs for an agent ------------------------------------------------

    def next_execution(self, task_id: str) -> Call | None:
        """Return the call that a supervisor is to run next, if there is one."""
        with self._context.store.read() as view:
            if self._context.find_runner(view.task(task_id).spec.runner).makes_calls:
                return None
            return batches.next_to_execute(view, task_id)

    def executions(self, task_id: str) -> list[Call]:
        """Return the calls of a task that are in shims of their own, or were about to be."""
        with self._context.store.read() as view:
            batch = batches.batch_of(view, task_id)
            under_way = [call for state in _UNDER_WAY for call in view.calls_in(task_id, state)]
        return [call for call in under_way if call.number in batch and not is_handed_out(call)]

    def state_of(self, call: Call) -> ShimState:
        """Return how far a call got that a supervisor claimed."""
        if call.shim:
            return self._context.processes.shim_state(call.place, call.shim)
        with self._context.store.read() as view:
            return state_at(self._context.processes, view, call, place=call.place)

    def mark_start(self, call: Call, place: str) -> None:
        """Leave a mark on this machine that a call starts, before it does.

        Raise OSError where that cannot be done.
        """
        mark = StartMark(place=place, digest=call.digest)
        self._context.processes.leave_start_mark(call.id, mark)

    def claim_call(self, run: Run, call: Call) -> Call | None:
        """Take an approved call for one shim.

        None: it is not what was approved any more, and a person is asked again; or a forgotten
        start of it still runs, and the next look decides.
        """
        found, drift = self._check_start(call, place=f"{call.id}.{call.attempt + 1}")
        if found and isinstance(found.state, StillRuns):
            return None
        with self._context.change() as tx:
            task, current = tx.held(run)
            approved = tx.rows.call(task.id, call.number)
            if drift:
                _ask_again(tx, current, approved, drift)
                return None
            attempt = approved.attempt + 1
            claimed = tx.move(approved, CallMove.CLAIM, claimed_by=run.supervisor, attempt=attempt)
            if found:
                _settle_forgotten(tx, current, claimed, found)
                return None
            return claimed

    def execute_call(self, run: Run, call: Call, *, shim: ProcessId) -> Call | None:
        """Write down that the gate of a call is about to open.

        None: nothing lets it start any more, and a person is asked.
        """
        drift: Drift | None = None
        # Where only a rule lets a call start, the policy must agree now. It reads files, which may
        # be large, so that happens between two transactions.
        is_judged = False
        while True:
            with self._context.change() as tx:
                task, current = tx.held(run)
                claimed = tx.rows.call(task.id, call.number)
                reason = self._reasons.verify_again(tx.rows, claimed)
                if isinstance(reason, NoReason):
                    weighed = self._context.gate.weigh(tx.rows, task, claimed.tool, claimed.body)
                    drift = (*weighed, (reason.why,))
                if drift:
                    released = tx.move(claimed, CallMove.RELEASE, shim=None)
                    _ask_again(tx, current, released, drift)
                    return None
                assert isinstance(reason, Reason)  # noqa: S101 -- else a person was asked
                if reason.grounds is not Grounds.RULE or is_judged:
                    executing = tx.move(claimed, CallMove.EXECUTE, shim=shim)
                    tell_start(tx, current, executing, reason, pid=shim.pid)
                    return executing
            drift = self._find_drift(call)
            is_judged = True

    def release_call(self, run: Run, call: Call) -> None:
        """Give back a call that provably did not start."""
        with self._context.change() as tx:
            task, _ = tx.held(run)
            tx.move_call(task.id, call.number, CallMove.RELEASE, shim=None)
            tx.tell(task.id, "call_released", call=call.number)

    def finish_call(self, run: Run, call: Call, result: CallResult) -> None:
        """Record what a call gave back whose shim has left."""
        with self._context.change() as tx:
            task, current = tx.held(run)
            _close(tx, current, tx.rows.call(task.id, call.number), result)

    def adopt_call(self, run: Run, call: Call) -> Call:
        """Take over a call whose supervisor is gone and whose shim lives."""
        with self._context.change() as tx:
            tx.held(run)
            current = tx.rows.call(call.task_id, call.number)
            return tx.save_call(current, claimed_by=run.supervisor)

    def conclude_call(self, run: Run, call: Call, state: ShimState) -> None:
        """Record how a call ended whose shim has left."""
        with self._context.change() as tx:
            _, current = tx.held(run)
            conclude(tx, current, call, state)

    def _check_start(self, call: Call, *, place: str) -> tuple[ForgottenStart | None, Drift | None]:
        """Return the forgotten start of a call, or else what has changed since it was approved."""
        with self._context.store.read() as view:
            found = find_forgotten_start(self._context.processes, view, call, place=place)
        return found, None if found else self._find_drift(call)

    def _find_drift(self, call: Call) -> Drift | None:
        """Check an approved call once more, outside of any transaction: files may be large."""
        gate = self._context.gate
        with self._context.store.read() as view:
            task, call = view.task(call.task_id), view.call(call.task_id, call.number)
            reason = self._reasons.verify(view, call)
            if isinstance(reason, NoReason):
                changes: tuple[str, ...] = (reason.why,)
            else:
                changes = gate.drift(view, task, call, reason.grounds)
            return (*gate.weigh(view, task, call.tool, call.body), changes) if changes else None

    # --- what a driver keeps ----------------------------------------------------------------------

    def is_supervised(self, run_id: str) -> bool:
        """Return whether the supervisor that runs the calls of a run is alive."""
        with self._context.store.read() as view:
            run = view.run(task_of_run(run_id), number_of_run(run_id))
        return self._context.processes.supervisor_lives(run.supervisor)

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        """Return a transcript."""
        with self._context.store.read() as view:
            return view.messages(task_id, after=after)

    def append_messages(self, run_id: str, messages: Sequence[bytes], *, after: int) -> None:
        """Add to a transcript; the store refuses it if the transcript ends elsewhere."""
        with self._context.change() as tx:
            _append(tx, run_id, messages, after=after)

    def conclude_batch(self, run_id: str, results: Sequence[bytes], *, after: int) -> None:
        """Add the results of a batch to a transcript and drop the batch, in one transaction."""
        with self._context.change() as tx:
            task = _append(tx, run_id, results, after=after)
            BATCH.drop(tx.rows, task.id)

    def note_session(self, run_id: str, ref: str, *, resumable: bool) -> Run:
        """Write down the provider's name of its session, and whether it can be resumed."""
        with self._context.change() as tx:
            _, run = tx.running(run_id)
            if (run.session_ref, run.resumable) == (ref, resumable):
                return run
            return tx.save_run(run, session_ref=ref, resumable=resumable)

    def report(self, run_id: str, report: Report) -> None:
        """Keep what a run reports of itself, with what all runs of its task took so far."""
        with self._context.change() as tx:
            task, run = tx.running(run_id)
            overall = report.task or spent_before(tx.rows, run).plus(report.spent)
            report = msgspec.structs.replace(report, task=overall)
            REPORT.of(run.number).keep(tx.rows, task.id, report)


def conclude(tx: Transaction, run: Run, call: Call, state: ShimState) -> None:
    """Record how a call ended whose shim has left."""
    current = tx.rows.call(call.task_id, call.number)
    if current.state not in _UNDER_WAY:
        return  # recorded before, and the answer of the store was lost
    if current.state is CallState.CLAIMED and not isinstance(state, NeverStarted):
        current = record_start(tx, run, current, call.place)
    match state:
        case NeverStarted(why=why) if (
            state.is_refused or state.is_busy
        ) and current.attempt >= TRIES:
            error = f"it could not be started in {TRIES} tries: {why}"
            _close(tx, run, current, CallResult(ok=False, error=error))
        case NeverStarted():
            tx.move(current, CallMove.RELEASE, shim=None)
            tx.tell(call.task_id, "call_released", run=run.number, call=call.number)
        case Ended(exit=exit):
            tell_what_ran(tx, run, current.number, exit)
            _close(tx, run, current, result_of(exit))
        case _:  # a person is asked when the run has ended
            tx.move(current, CallMove.LOSE)
            tx.tell(call.task_id, "call_lost", run=run.number, call=call.number)


def _settle_forgotten(tx: Transaction, run: Run, claimed: Call, found: ForgottenStart) -> None:
    """Record that a claimed call had started before the store was set back, and how it ended."""
    record_start(tx, run, claimed, found.place)
    conclude(tx, run, claimed, found.state)


def _close(tx: Transaction, run: Run, call: Call, result: CallResult) -> None:
    tx.move(call, CallMove.FINISH if result.ok else CallMove.FAIL)
    RESULT.keep_of(tx.rows, call, result)
    tx.tell(
        call.task_id, "call_closed", run=run.number, call=call.number, exit_code=result.exit_code
    )


def _ask_again(tx: Transaction, run: Run, call: Call, drift: Drift) -> None:
    judgement, files, changes = drift
    task = tx.rows.task(call.task_id)
    batches.again(tx, task, run, call, judgement, files, why="; ".join(changes))


def tell_what_ran(tx: Transaction, run: Run, call: int, exit: Exit) -> None:  # noqa: A002 -- the word for it
    """Record the digests of what was executed, and the files that changed while it ran."""
    if exit.program or exit.script:
        tx.tell(
            run.task_id,
            "program_executed",
            run=run.number,
            call=call,
            program=exit.program,
            script=exit.script,
        )
    if exit.changed or exit.restored or exit.unknown:
        tx.tell(
            run.task_id,
            "files_changed",
            run=run.number,
            call=call,
            files=exit.changed,
            restored=exit.restored and f"{exit.restored}; which content was read is not known",
            unknown=exit.unknown and f"{exit.unknown}; another process may have changed it",
        )


def result_of(exit: Exit) -> CallResult:  # noqa: A002 -- the word for it
    """Return what a shim saw of a call, as its agent is told."""
    output, left_out = cut(exit.output)
    error = "it was interrupted" if exit.interrupted else exit.error
    return CallResult(
        ok=exit.code == 0 and error is None,
        output=output,
        exit_code=exit.code,
        signal=exit.signal,
        error=error,
        left_out=left_out,
    )


def is_handed_out(call: Call) -> bool:
    """Return whether the agent makes a call itself: then a run claims it, not a supervisor."""
    return bool(call.claimed_by and call.claimed_by.startswith(f"{call.task_id}."))


def _append(tx: Transaction, run_id: str, messages: Sequence[bytes], *, after: int) -> Task:
    task, _ = tx.running(run_id)
    for number, body in enumerate(messages, start=after + 1):
        tx.rows.add_message(task.id, number, body)
    return task


def find_forgotten_start(
    processes: Processes, view: View, call: Call, *, place: str
) -> ForgottenStart | None:
    """Return the start of a call that this machine has proof of and the trail does not tell."""
    mark = processes.start_mark(call.id, place=place)
    if mark is None or is_known(mark.place, call, view.newest_events(call.task_id, limit=-1)):
        return None
    state = processes.found_at(mark.place)
    if isinstance(state, NeverStarted):
        return None
    # The files of a call that was handed out are those of its agent; other bytes are another call.
    # Neither says how this call ended.
    is_handed_out = call.tool != COMMAND and number_of_run(mark.place) > 0
    has_other_bytes = bool(mark.digest) and not call.digest.startswith(mark.digest)
    if is_handed_out or (has_other_bytes and not isinstance(state, StillRuns)):
        state = Vanished()
    return ForgottenStart(mark.place, state)


def state_at(processes: Processes, view: View, call: Call, *, place: str) -> ShimState:
    """Return how far a claimed call got, if the store knows no shim of it."""
    found = find_forgotten_start(processes, view, call, place=place)
    return found.state if found and found.place == place else NeverStarted()


def record_start(tx: Transaction, run: Run, call: Call, place: str) -> Call:
    """Record that a claimed call did start."""
    started = tx.move(call, CallMove.EXECUTE)
    tx.tell(
        call.task_id,
        "call_found",
        run=run.number,
        call=call.number,
        digest=call.digest,
        place=place,
    )
    return started

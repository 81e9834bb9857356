"""What a driver does for its agent.

Puts calls before the policy, has each run once, and keeps what came of it.
"""

from collections.abc import Sequence

import msgspec

from adjourn.controller import asks, batches
from adjourn.controller.context import Equipped
from adjourn.controller.reasons import tell_start
from adjourn.controller.standing import spent_before
from adjourn.controller.transaction import Steps
from adjourn.core.agent.calls import CallResult, Held, Proposed, Report, cut
from adjourn.core.call import COMMAND, RESULT, Call
from adjourn.core.errors import AlreadyDone, NotAllowed
from adjourn.core.outcome import Exit
from adjourn.core.policy.judgement import Judgement
from adjourn.core.policy.opening import Way, way_of
from adjourn.core.reason import Grounds, NoReason, Reason, is_known
from adjourn.core.states import CallMove, CallState
from adjourn.core.task import TRIES, ProcessId, Run, Task, number_of_run, task_of_run
from adjourn.ports.store import View
from adjourn.ports.world import Ended, NeverStarted, ShimState, StartMark, StillRuns, Vanished

UNMARKED = "its start could not be marked on disk"
_UNDER_WAY = (CallState.CLAIMED, CallState.EXECUTING)

# What is said of a call now, its files, and what has changed
Drift = tuple[Judgement, dict[str, str], tuple[str, ...]]


class Found(msgspec.Struct, frozen=True):
    """A start of which this machine has proof, and of which the trail does not tell.

    The store was set back since.
    """

    place: str
    state: ShimState


class Executions(Equipped):
    """Moves the calls that a supervisor runs for an agent."""

    # --- what ran before the store was set back ---------------------------------------------------

    def _found_start(self, view: View, call: Call, *, place: str) -> Found | None:
        """Return the start of a call of which the trail does not tell, if there is proof of one on this machine."""
        mark = self._processes.start_mark(call.id, place=place)
        if mark is None or is_known(mark.place, call, view.told(call.task_id, limit=-1)):
            return None
        state = self._processes.found_at(mark.place)
        if isinstance(state, NeverStarted):
            return None
        # Then the files are its agent's
        is_handed_out = call.tool != COMMAND and number_of_run(mark.place) > 0
        has_other_bytes = bool(mark.digest) and not call.digest.startswith(mark.digest)
        if is_handed_out or (has_other_bytes and not isinstance(state, StillRuns)):
            state = Vanished()
        return Found(mark.place, state)

    def _tell_found(self, step: Steps, run: Run, call: Call, place: str, **changes: object) -> Call:
        """Write down that a call that was claimed did start."""
        started = step.move(call, CallMove.EXECUTE, **changes)
        step.tell(
            call.task_id,
            "call_found",
            run=run.number,
            call=call.number,
            digest=call.digest,
            place=place,
        )
        return started

    def mark_start(self, call: Call, place: str) -> None:
        """Leave a mark on this machine that a call starts, before it does.

        Raise OSError where that cannot be done.
        """
        self._processes.leave_start_mark(call.id, StartMark(place=place, digest=call.digest))

    # --- calls beside an agent --------------------------------------------------------------------

    def next_execution(self, task_id: str) -> Call | None:
        """Return the call that is to run next beside its agent, if one is."""
        with self._store.read() as view:
            if self._find_runner(view.task(task_id).spec.runner).makes_calls:
                return None
            return batches.next_to_execute(view, task_id)

    def executions(self, task_id: str) -> list[Call]:
        """Return the calls of a task that are in shims of their own, or were about to be."""
        with self._store.read() as view:
            batch = batches.batch_of(view, task_id)
            under_way = [call for state in _UNDER_WAY for call in view.calls_in(task_id, state)]
        return [call for call in under_way if call.number in batch and not is_handed_out(call)]

    def claim_call(self, run: Run, call: Call) -> Call | None:
        """Take an approved call for one shim.

        None: it is not what was approved any more, and a person is asked again.
        """
        with self._store.read() as view:
            found = self._found_start(view, call, place=f"{call.id}.{call.attempt + 1}")
        if found and isinstance(found.state, StillRuns):
            return None  # looked at again
        drift = self._drift(call) if found is None else None
        with self._steps() as step:
            task, current = step.held(run)
            approved = step.tx.call(task.id, call.number)
            if found:
                claimed = step.move(
                    approved,
                    CallMove.CLAIM,
                    claimed_by=run.supervisor,
                    attempt=approved.attempt + 1,
                )
                self._tell_found(step, current, claimed, found.place)
                self._conclude_call(step, current, claimed, found.state)
                return None
            if drift:
                self._ask_again(step, current, approved, drift)
                return None
            return step.move(
                approved, CallMove.CLAIM, claimed_by=run.supervisor, attempt=approved.attempt + 1
            )

    def execute_call(self, run: Run, call: Call, *, shim: ProcessId) -> Call | None:
        """Write down that the gate of a call is about to open.

        None: nothing lets it start any more, and a person is asked.
        """
        drift: Drift | None = None
        # By the policy, where only a rule lets it start: files are not looked at inside of a
        # transaction
        is_judged = False
        while True:
            with self._steps() as step:
                task, current = step.held(run)
                claimed = step.tx.call(task.id, call.number)
                reason = self._proofs.reason_as_told(step.tx, claimed)
                if isinstance(reason, NoReason):
                    drift = (
                        *self._gate.weigh(step.tx, task, claimed.tool, claimed.body),
                        (reason.why,),
                    )
                if drift:
                    self._ask_again(
                        step, current, step.move(claimed, CallMove.RELEASE, shim=None), drift
                    )
                    return None
                assert isinstance(reason, Reason)  # noqa: S101 -- else a person was asked
                if reason.grounds is not Grounds.RULE or is_judged:
                    executing = step.move(claimed, CallMove.EXECUTE, shim=shim)
                    tell_start(step, current, executing, reason, pid=shim.pid)
                    return executing
            drift = self._drift(call)
            is_judged = True

    def release_call(self, run: Run, call: Call) -> None:
        """Give back a call that provably did not start."""
        with self._steps() as step:
            task, _ = step.held(run)
            step.move_call(task.id, call.number, CallMove.RELEASE, shim=None)
            step.tell(task.id, "call_released", call=call.number)

    def finish_call(self, run: Run, call: Call, result: CallResult) -> None:
        """Record what a call gave back whose shim has left."""
        with self._steps() as step:
            task, current = step.held(run)
            self._close(step, step.tx.call(task.id, call.number), current, result)

    def adopt_call(self, run: Run, call: Call) -> Call:
        """Take over a call whose supervisor is gone and whose shim lives."""
        with self._steps() as step:
            step.held(run)
            current = step.tx.call(call.task_id, call.number)
            taken = msgspec.structs.replace(
                current, claimed_by=run.supervisor, version=current.version + 1
            )
            step.tx.save_call(current, taken)
            return taken

    def conclude_call(self, run: Run, call: Call, state: ShimState) -> None:
        """Write down what became of a call whose shim has left."""
        with self._steps() as step:
            _, current = step.held(run)
            self._conclude_call(step, current, call, state)

    def _conclude_call(self, step: Steps, run: Run, call: Call, state: ShimState) -> None:
        current = step.tx.call(call.task_id, call.number)
        if current.state not in _UNDER_WAY:
            return  # it was written down, and the reply was lost
        if current.state is CallState.CLAIMED and not isinstance(state, NeverStarted):
            current = self._tell_found(step, run, current, call.place)
        match state:
            case NeverStarted(why=why, is_refused=True) if current.attempt >= TRIES:
                self._close(
                    step,
                    current,
                    run,
                    CallResult(ok=False, error=f"it could not be started in {TRIES} tries: {why}"),
                )
            case NeverStarted():
                step.move(current, CallMove.RELEASE, shim=None)
                step.tell(call.task_id, "call_released", run=run.number, call=call.number)
            case Ended(exit=exit):
                tell_what_ran(step, run, current.number, exit)
                self._close(step, current, run, result_of(exit))
            case _:  # a person is asked when the run has ended
                step.move(current, CallMove.LOSE)
                step.tell(call.task_id, "call_lost", run=run.number, call=call.number)

    def _left_beside(self, run: Run) -> list[tuple[Call, ShimState]] | None:
        """Return what became of the calls that ran beside a run whose supervisor is gone.

        None: one of them still runs.
        """
        found = [(call, self.state_of(call)) for call in self.executions(run.task_id)]
        return None if any(isinstance(state, StillRuns) for _, state in found) else found

    def state_of(self, call: Call) -> ShimState:
        """Say what became of a call that was taken to be run beside its agent."""
        if call.shim:
            return self._processes.shim_state(call.place, call.shim)
        with self._store.read() as view:
            found = self._found_start(view, call, place=call.place)
        return found.state if found and found.place == call.place else NeverStarted()

    def _close(self, step: Steps, call: Call, run: Run, result: CallResult) -> None:
        step.move(call, CallMove.FINISH if result.ok else CallMove.FAIL)
        step.tx.keep_document(
            call.task_id, f"{RESULT}{call.tool_call_id}", batches.result_body(result)
        )
        step.tell(
            call.task_id,
            "call_closed",
            run=run.number,
            call=call.number,
            exit_code=result.exit_code,
        )

    def _drift(self, call: Call) -> Drift | None:
        """Look at an approved call once more, outside of any transaction: files may be large."""
        with self._store.read() as view:
            task, call = view.task(call.task_id), view.call(call.task_id, call.number)
            reason = self._proofs.reason(view, call)
            if isinstance(reason, NoReason):
                changes: tuple[str, ...] = (reason.why,)
            else:
                changes = self._gate.drift(view, task, call, reason.grounds)
            return (
                (*self._gate.weigh(view, task, call.tool, call.body), changes) if changes else None
            )

    def _ask_again(self, step: Steps, run: Run, call: Call, drift: Drift) -> None:
        judgement, files, changes = drift
        batches.again(
            step, step.tx.task(call.task_id), run, call, judgement, files, why="; ".join(changes)
        )


def tell_what_ran(step: Steps, run: Run, call: int, exit: Exit) -> None:  # noqa: A002 -- the word for it
    """Write down the digests of what was executed, and which files changed meanwhile that could not be pinned."""
    if exit.program or exit.script:
        step.tell(
            run.task_id,
            "program_executed",
            run=run.number,
            call=call,
            program=exit.program,
            script=exit.script,
        )
    if exit.changed or exit.restored or exit.unknown:
        step.tell(
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
    ok = exit.code == 0 and error is None
    return CallResult(
        ok=ok,
        output=output,
        exit_code=exit.code,
        signal=exit.signal,
        error=error,
        left_out=left_out,
    )


def is_handed_out(call: Call) -> bool:
    """Say whether the process of a run makes a call by itself.

    Then it is claimed by the run, and no supervisor.
    """
    return bool(call.claimed_by and call.claimed_by.startswith(f"{call.task_id}."))


class Driving(Executions):
    """Applies the rules to the calls of an agent."""

    # --- what the agent wants ---------------------------------------------------------------------

    def propose_batch(self, run_id: str, batch: Sequence[Proposed]) -> list[Held]:
        """Write down all calls of one answer of the model.

        Which run, which wait for a person, and which never may.
        """
        with self._store.read() as view:
            task = view.task(task_of_run(run_id))
            weighed = [(one, *self._gate.weigh(view, task, one.tool, one.body)) for one in batch]
        with self._steps() as step:
            task, run = step.running(run_id)
            batches.hold(step, task, run, weighed)
            return batches.held(step.tx, task.id)

    def batch(self, task_id: str) -> list[Held]:
        """Return the newest batch of a task as it stands."""
        with self._store.read() as view:
            return batches.held(view, task_id)

    def held_call(self, task_id: str, name: str) -> Held | None:
        """Return a call of an agent by its name, as it stands."""
        with self._store.read() as view:
            call = view.call_labelled(task_id, name)
            return batches.held_call(view, call) if call else None

    def lets_run(self, task_id: str, proposed: Proposed) -> bool:
        """Say whether a call would run without anybody being asked; nothing is written down."""
        with self._store.read() as view:
            task = view.task(task_id)
            judgement, _ = self._gate.weigh(view, task, proposed.tool, proposed.body)
            return (
                batches.is_just_made(proposed, judgement)
                or way_of(judgement, is_gated=task.spec.pause_on_approval) is Way.RUN
            )

    # --- calls that the agent makes by itself -----------------------------------------------------

    def hand_out(self, run_id: str, call: Call) -> Call | None:
        """Let an agent make an approved call, once.

        None: it is not what was approved any more, and a person is asked again.
        """
        with self._store.read() as view:
            found = self._found_start(view, call, place=run_id)
        drift = self._drift(call) if found is None else None
        with self._steps() as step:
            task, run = step.running(run_id)
            current = step.tx.call(task.id, call.number)
            if current.state is not CallState.APPROVED:
                raise AlreadyDone(
                    f"call {call.id} is {current.state}: it was handed out before",
                    way_out=f"adjourn show {task.id}",
                )
            if found:
                claimed = step.move(current, CallMove.CLAIM, claimed_by=run.id)
                self._tell_found(step, run, claimed, found.place)
                self._conclude_call(step, run, claimed, Vanished())
            elif drift:
                self._ask_again(step, run, current, drift)
                return None
            else:
                reason = self._proofs.reason_as_told(step.tx, current)
                if isinstance(reason, NoReason):
                    raise NotAllowed(
                        f"call {call.id} may not start: {reason.why}",
                        way_out=f"adjourn show {task.id}",
                    )
                current = asks.hand_out(step, run, current, reason)
        if found:
            raise AlreadyDone(
                f"call {call.id} was started before the store was set back: whether it ran to its end, a person has to say",
                way_out=f"adjourn show {task.id}",
            )
        try:
            self.mark_start(current, run_id)
        except OSError as error:
            self.close_handed_out(
                run_id, current, CallResult(ok=False, error=f"{UNMARKED}: {error.strerror}")
            )
            raise NotAllowed(
                f"call {call.id} may not start: {UNMARKED}", way_out="adjourn doctor"
            ) from error
        return current

    def close_handed_out(self, run_id: str, call: Call, result: CallResult) -> None:
        """Take a driver's word on what became of a call that its agent made."""
        with self._steps() as step:
            task, run = step.running(run_id)
            self._close(step, step.tx.call(task.id, call.number), run, result)

    def directories(self, task_id: str) -> tuple[str, ...]:
        """Return where an agent may read and write beside its workspace."""
        with self._store.read() as view:
            return self._gate.directories(view, view.task(task_id))

    def is_supervised(self, run_id: str) -> bool:
        """Say whether somebody lives who runs the calls of a run."""
        with self._store.read() as view:
            run = view.run(task_of_run(run_id), number_of_run(run_id))
        return self._processes.supervisor_lives(run.supervisor)

    # --- what the driver keeps --------------------------------------------------------------------

    def append_messages(self, run_id: str, messages: Sequence[bytes], *, after: int) -> None:
        """Add to a transcript; whoever believes that it ends elsewhere is refused by the store."""
        with self._steps() as step:
            _append(step, run_id, messages, after=after)

    def conclude_batch(self, run_id: str, results: Sequence[bytes], *, after: int) -> None:
        """Add what came of a batch to a transcript and be done with the batch.

        Nobody finds one without the other.
        """
        with self._steps() as step:
            task = _append(step, run_id, results, after=after)
            step.tx.keep_document(task.id, batches.BATCH, None)

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        """Return a transcript."""
        with self._store.read() as view:
            return view.messages(task_id, after=after)

    def note_session(self, run_id: str, ref: str, *, resumable: bool) -> Run:
        """Write down the provider's own name of its session, and whether it can go on from there."""
        with self._steps() as step:
            _, run = step.running(run_id)
            if (run.session_ref, run.resumable) == (ref, resumable):
                return run
            return step.save_run(run, session_ref=ref, resumable=resumable)

    def report(self, run_id: str, report: Report) -> None:
        """Keep what a run says of itself."""
        with self._steps() as step:
            task, run = step.running(run_id)
            overall = report.task or spent_before(step.tx, run).plus(report.spent)
            body = msgspec.json.encode(msgspec.structs.replace(report, task=overall))
            step.tx.keep_document(task.id, f"{batches.REPORT}:{run.number}", body)


def _append(step: Steps, run_id: str, messages: Sequence[bytes], *, after: int) -> Task:
    task, _ = step.running(run_id)
    for number, body in enumerate(messages, start=after + 1):
        step.tx.add_message(task.id, number, body)
    return task

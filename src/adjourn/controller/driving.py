"""What a driver does for its agent: puts calls before the policy, has each run once, and keeps what came of it."""

from collections.abc import Sequence

import msgspec

from adjourn.controller import batches, inside
from adjourn.controller.executions import UNMARKED, Executions
from adjourn.controller.standing import spent_before
from adjourn.controller.steps import Steps
from adjourn.core.call import Call
from adjourn.core.driving import CallResult, Held, Proposed, Report
from adjourn.core.errors import AlreadyDone, NotAllowed
from adjourn.core.opening import Way, way_of
from adjourn.core.reason import NoReason
from adjourn.core.states import CallMove, CallState
from adjourn.core.task import Run, Task, number_of_run, task_of_run
from adjourn.ports.runs import Vanished


class Driving(Executions):
    """Applies the rules to the calls of an agent."""

    # --- what the agent wants --------------------------------------------------------------------------------------

    def propose_batch(self, run_id: str, batch: Sequence[Proposed]) -> list[Held]:
        """Write down all calls of one answer of the model: which run, which wait for a person, and which never may."""
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
            return batches.is_just_made(proposed, judgement) or way_of(judgement, is_gated=task.spec.pause_on_approval) is Way.RUN

    # --- calls that the agent makes by itself ----------------------------------------------------------------------

    def hand_out(self, run_id: str, call: Call) -> Call | None:
        """Let an agent make an approved call, once. None: it is not what was approved any more, and a person is asked again."""
        with self._store.read() as view:
            found = self._found_start(view, call, place=run_id)
        drift = self._drift(call) if found is None else None
        with self._steps() as step:
            task, run = step.running(run_id)
            current = step.tx.call(task.id, call.number)
            if current.state is not CallState.APPROVED:
                raise AlreadyDone(
                    f"call {call.id} is {current.state}: it was handed out before", way_out=f"adjourn show {task.id}"
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
                    raise NotAllowed(f"call {call.id} may not start: {reason.why}", way_out=f"adjourn show {task.id}")
                current = inside.hand_out(step, run, current, reason)
        if found:
            raise AlreadyDone(
                f"call {call.id} was started before the store was set back: whether it ran to its end, a person has to say",
                way_out=f"adjourn show {task.id}",
            )
        try:
            self.mark_start(current, run_id)
        except OSError as error:
            self.close_handed_out(run_id, current, CallResult(ok=False, error=f"{UNMARKED}: {error.strerror}"))
            raise NotAllowed(f"call {call.id} may not start: {UNMARKED}", way_out="adjourn doctor") from error
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

    # --- what the driver keeps -------------------------------------------------------------------------------------

    def append_messages(self, run_id: str, messages: Sequence[bytes], *, after: int) -> None:
        """Add to a transcript; whoever believes that it ends elsewhere is refused by the store."""
        with self._steps() as step:
            _append(step, run_id, messages, after=after)

    def conclude_batch(self, run_id: str, results: Sequence[bytes], *, after: int) -> None:
        """Add what came of a batch to a transcript and be done with the batch: nobody finds one without the other."""
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

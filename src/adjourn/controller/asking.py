"""What a running process asks, proposes, keeps and gets answered."""

from collections.abc import Sequence

from adjourn.controller import inside
from adjourn.controller.equipped import Equipped
from adjourn.core.ask import Ask, Principal, Proposal, Question, Reply
from adjourn.core.call import Call
from adjourn.core.clarification import Clarification, Request
from adjourn.core.reason import NoReason, Reason, is_known
from adjourn.core.states import AskState, CallMove, CallState
from adjourn.core.task import Run
from adjourn.ports.runs import StartMark
from adjourn.ports.store import View


class Asking(Equipped):
    """Applies the rules inside a run."""

    def ask(self, run_id: str, question: Question) -> Ask:
        """Register a question of a running process, or return it with its answer. The n-th with a key is the n-th ask."""
        with self._steps() as step:
            found, _ = inside.ask(step, *step.running(run_id), question)
            return found

    def clarify(self, run_id: str, request: Request) -> tuple[Clarification, list[Ask]]:
        """Register the questions of a running process, all in one moment, or return them with their answers."""
        with self._steps() as step:
            return inside.register(step, *step.running(run_id), request)

    def collect(self, run_id: str, ask_ids: Sequence[str]) -> list[Ask]:
        """Return asks to the running process that waits for them, if all are settled; else nothing."""
        with self._steps() as step:
            _, run = step.running(run_id)
            return inside.collect(step, run, ask_ids)

    def propose(self, run_id: str, proposal: Proposal) -> tuple[Ask, Call]:
        """Put a call of a running process before a person; an approved one is handed out to it, once."""
        with self._steps() as step:
            task, run = step.running(run_id)
            judgement = self._gate.judge(step.tx, task, proposal.tool, proposal.body)
            found, call = inside.propose(step, task, run, proposal, judgement, find_reason=self._reason_to_hand_out)
        if call.state is CallState.EXECUTING:
            self._processes.leave_start_mark(call.id, StartMark(place=run_id, digest=call.digest))
        return found, call

    def _reason_to_hand_out(self, view: View, call: Call) -> Reason | NoReason:
        mark = self._processes.start_mark(call.id, place="")
        if mark and not is_known(mark.place, call, view.told(call.task_id, limit=-1)):
            ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
            return NoReason(why="it was started before the store was set back, and may have run", ask=ask)
        return self._proofs.reason(view, call)

    def close_call(self, run_id: str, call: Call, move: CallMove) -> None:
        """Take a process's word on what became of the call that it was handed."""
        with self._steps() as step:
            task, run = step.running(run_id)
            step.move_call(task.id, call.number, move)
            step.tell(task.id, "call_closed", run=run.number, call=call.number, move=move.value)

    def keep(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task: what its process saved, its checkpoint, or which response was taken."""
        with self._steps() as step:
            step.tx.keep_document(task_id, name, body)

    def answers(self, task_id: str) -> dict[str, str] | None:
        """Return the answers to a task's newest clarification, or None while it has none or is not answered whole."""
        with self._store.read() as view:
            clarification = inside.clarification_of(view, task_id)
            asks = [view.ask(ask_id) for ask_id in clarification.asks] if clarification else []
        if not asks or any(ask.state is not AskState.ANSWERED for ask in asks):
            return None
        return {ask.key or ask.id: ask.reply or "" for ask in asks}

    def feedback(self, run: Run) -> list[str]:
        """Return what reviewers wanted changed in the work of earlier runs of the same session, the newest last."""
        if run.resumed_from is None:
            return []
        from adjourn.core.review import feedback_of  # seldom: most work is not reviewed

        with self._store.read() as view:
            reviews = [ask for ask in view.asks(run.task_id) if ask.review and ask.state is AskState.ANSWERED]
            told = [ask.reply for ask in reviews if view.run(run.task_id, ask.run).session_id == run.session_id]
        return [feedback for text in told if (feedback := feedback_of(text))]

    def respond(self, task_id: str, replies: Sequence[Reply], *, digest: bytes, by: Principal) -> list[Ask]:
        """Record the answers of a response file, and which file that was: however often it is seen, it counts once."""
        with self._steps() as step:
            if step.tx.document(task_id, inside.RESPONSE) == digest:
                return []  # somebody took it in this very moment
            step.tx.keep_document(task_id, inside.RESPONSE, digest)
            return self._decide(step, replies, by=by)

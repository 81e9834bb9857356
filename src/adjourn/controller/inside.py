"""What a process inside a run can ask for: answers, clarifications and approvals, found again however often it starts."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from adjourn.controller.steps import ASKED, POLICY, Asked, Steps
from adjourn.core.ask import Ask, AskKind, Proposal, Question
from adjourn.core.call import EDITABLE, ORIGINAL, Call, digest_of, slot_of
from adjourn.core.clarification import Clarification, Left, Request
from adjourn.core.digest import sha256
from adjourn.core.errors import AlreadyDone
from adjourn.core.judgement import Judgement
from adjourn.core.states import AskMove, AskState, CallMove, CallState
from adjourn.core.task import Run, Task
from adjourn.ports.store import Turn, View

SAVED = "saved"
CLARIFICATION = "clarification"
CHECKPOINT = "checkpoint"
RESPONSE = "response"
DOCUMENTS = (SAVED, CLARIFICATION, CHECKPOINT, RESPONSE)


class Checks(Protocol):
    """Checks what was approved before it is handed out."""

    def require_genuine(self, view: View, call: Call) -> None:
        """Refuse a call that must not be handed out."""
        ...

    def lapsed(self, view: View, call: Call) -> str | None:
        """Say why the approval of a call holds no more, if it does not."""
        ...


# --- questions -------------------------------------------------------------------------------------------------------------


def ask(step: Steps, task: Task, run: Run, question: Question, *, request: str = "") -> tuple[Ask, Task]:
    """Register a question, or find it again with its answer: of the same request, if it belongs to one."""
    key = f"{ASKED}{question.key}"
    slot = slot_of(task.session_id, key + request, 1 + step.tx.count_turns(run.id, key))
    found = _earlier_ask(step, question, slot=slot)
    if found is None:
        asked = Asked(prompt=question.prompt, choices=question.choices, key=question.key, slot=slot)
        found, task = step.open_ask(task, run, AskKind.QUESTION, expires_after=question.expires_after, **asked)
    step.tx.add_turn(Turn(run_id=run.id, key=key, thing=found.id, left_open=found.is_open))
    return found, task


def _earlier_ask(step: Steps, question: Question, *, slot: str) -> Ask | None:
    found = step.tx.ask_in_slot(slot)
    if found and found.is_open and (found.prompt, found.choices) != (question.prompt, question.choices):
        step.withdraw(found)
        return None
    return found


def register(step: Steps, task: Task, run: Run, request: Request, *, name: str = "") -> tuple[Clarification, list[Ask]]:
    """Register all questions of a request, or find them again. Only one that leaves something open is a new clarification."""
    asks: list[Ask] = []
    for question in request.questions:
        found, task = ask(step, task, run, question, request=name)
        asks.append(found)
    clarification = Clarification(
        id=f"clarif_{step.new_id()}", request=request, asks=tuple(found.id for found in asks), asked_at=step.now
    )
    if any(found.is_open for found in asks):
        step.tx.keep_document(task.id, CLARIFICATION, msgspec.json.encode(clarification))
        step.tx.keep_document(task.id, RESPONSE, None)
    return clarification, asks


def register_left(step: Steps, task: Task, run: Run, left: Left) -> None:
    """Register what a process asks by the files that it left. A response to what it asked before stays one that was taken."""
    taken = step.tx.document(task.id, RESPONSE)
    if left.request:
        # Whoever knows files only does not ask again what was answered: its next request may begin at Q1 anew.
        register(step, task, run, left.request, name=f"\n{sha256(left.checkpoint).hex()}")
    if taken is not None and taken == left.response:
        step.tx.keep_document(task.id, RESPONSE, taken)
    step.tx.keep_document(task.id, CHECKPOINT, left.checkpoint)


def is_known(view: View, task: Task, left: Left) -> bool:
    """Say whether a checkpoint on disk is one that the store has: it was answered, or it is being asked."""
    return view.document(task.id, CHECKPOINT) == left.checkpoint


def collect(step: Steps, run: Run, ask_ids: Sequence[str]) -> list[Ask]:
    """Return asks if all of them are settled, and remember that the run got them; else nothing."""
    asks = [step.tx.ask(ask_id) for ask_id in ask_ids]
    if any(found.is_open for found in asks):
        return []
    for found in asks:
        step.tx.close_turn(run.id, found.id)
    return asks


def clarification_of(view: View, task_id: str) -> Clarification | None:
    """Return the newest clarification of a task, if it ever asked for one."""
    body = view.document(task_id, CLARIFICATION)
    return msgspec.json.decode(body, type=Clarification) if body else None


# --- approvals -------------------------------------------------------------------------------------------------------------


def propose(step: Steps, task: Task, run: Run, proposal: Proposal, judgement: Judgement, *, proofs: Checks) -> tuple[Ask, Call]:
    """Put a call before a person, or find it again; an approved one is handed out, once."""
    key = f"{ASKED}call:{proposal.key}"
    slot = slot_of(task.session_id, key, 1 + step.tx.count_turns(run.id, key))
    found = _earlier_proposal(step, proposal, slot=slot, proofs=proofs) or _new_proposal(
        step, task, run, proposal, judgement, slot=slot
    )
    step.tx.add_turn(Turn(run_id=run.id, key=key, thing=found.id, left_open=found.is_open))
    call = step.tx.call(task.id, found.call or 0)
    if call.state is CallState.APPROVED:
        proofs.require_genuine(step.tx, call)
        return found, hand_out(step, run, call)
    if found.state is AskState.APPROVED:
        raise AlreadyDone(f"call {call.id} is {call.state}: it was handed out before", way_out=f"adjourn show {task.id}")
    return found, call


def _earlier_proposal(step: Steps, proposal: Proposal, *, slot: str, proofs: Checks) -> Ask | None:
    """Return what was asked before; if its bytes were others, its call failed or its approval lapsed, a person is asked again."""
    found = step.tx.ask_in_slot(slot)
    if found is None:
        return None
    call = step.tx.call(found.task_id, found.call or 0)
    is_lapsed = call.state is CallState.APPROVED and proofs.lapsed(step.tx, call) is not None
    if _proposed_digest(step, call) == digest_of(proposal.body) and not is_lapsed:
        return None if call.state is CallState.FAILED else found
    if found.is_open:
        step.withdraw(found)
    elif call.state is CallState.APPROVED:
        step.move_call(call.task_id, call.number, CallMove.WITHDRAW)
    return None


def _proposed_digest(step: Steps, call: Call) -> str:
    """Return the digest of what the process proposed, whatever a person made of it."""
    original = step.tx.document(call.task_id, f"{ORIGINAL}{call.tool_call_id}")
    return digest_of(original) if original is not None else call.digest


def _new_proposal(step: Steps, task: Task, run: Run, proposal: Proposal, judgement: Judgement, *, slot: str) -> Ask:
    number = task.asks + 1
    call = step.new_tool_call(task, proposal.tool, proposal.body, state=CallState.PENDING, by=None, ask=number)
    counted = step.save(task, calls=call.number)
    if proposal.editable is not None:
        step.tx.keep_document(task.id, f"{EDITABLE}{call.tool_call_id}", proposal.editable)
    asked = Asked(prompt=proposal.prompt, key=proposal.key, slot=slot, call=call.number, manifest=proposal.prompt)
    asked["terms"] = judgement.terms_of_ask
    expires_after = judgement.expiry(proposal.expires_after)
    found, _ = step.open_ask(counted, run, AskKind.APPROVAL, expires_after=expires_after, **asked)
    return _turned_down(step, found, call, judgement) if judgement.is_turned_down else found


def _turned_down(step: Steps, found: Ask, call: Call, judgement: Judgement) -> Ask:
    """Reject what the policy never allows, at once."""
    step.move_call(call.task_id, call.number, CallMove.REJECT)
    return step.settle_ask(found, AskMove.REJECT, text="; ".join(judgement.why) or None, by=POLICY)


def hand_out(step: Steps, run: Run, call: Call) -> Call:
    """Let the process make its call. From here on only its own word, the end of its run or a person moves it."""
    step.move_call(call.task_id, call.number, CallMove.CLAIM, claimed_by=run.id)
    handed = step.move_call(call.task_id, call.number, CallMove.EXECUTE)
    step.tell(call.task_id, "call_executing", run=run.number, call=call.number, digest=call.digest)
    return handed

"""Whether a reply counts: who may give it, on which terms, and what its signature is worth."""

from collections.abc import Sequence

import msgspec

from adjourn.controller.steps import Steps, approved_command, plain_command
from adjourn.core.ask import Ask, Principal, Reply, Verb
from adjourn.core.authority import Level, Rights, level_of, refuse_inside, refuse_terms, refuse_without
from adjourn.core.call import COMMAND, DEFAULT_VALUE, Call, command_body, command_of, digest_of
from adjourn.core.errors import AdjournError, Conflict, NotAllowed
from adjourn.core.judgement import Terms, approved_on
from adjourn.core.opening import Obstacle, Opening
from adjourn.core.receipt import Receipt, receipt_of
from adjourn.core.signed import (
    Decision,
    Signed,
    decision_of,
    require_cover,
    require_fresh,
    require_same_call,
)
from adjourn.core.task import Task, task_of_run
from adjourn.ports import Authoriser, Signatures, View

_EVENTS_OF_A_REPLY = 2  # so many are told for one ask in the transaction that settles it; where there are more, all are read


class Trust:
    """Asks those who know: the authoriser for scopes, the allowed signers for signatures. Who cannot tell has said no."""

    def __init__(self, authoriser: Authoriser, signatures: Signatures) -> None:
        self._authoriser = authoriser
        self._signatures = signatures

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do."""
        try:
            return self._authoriser.rights(by)
        except AdjournError as error:
            raise NotAllowed(f"whether {by.name} may do this cannot be told: {error.sentence}", way_out=error.way_out) from error
        except Exception as error:
            sentence = f"whether {by.name} may do this cannot be told: {type(error).__name__}: {error}"
            raise NotAllowed(sentence, way_out="adjourn doctor") from error

    def authorise(self, by: Principal, verb: str, task: Task | None = None) -> None:
        """Refuse whoever may not do this; inside a run, what the run's own task started is its own."""
        if by.inside_run and not (task and task.parent_task == task_of_run(by.inside_run)):
            refuse_inside(by, verb)
        refuse_without(self.rights(by).scopes, by, verb)

    def weigh(self, view: View, ask: Ask, verb: Verb, *, by: Principal) -> Level:
        """Say what a reply is worth, or refuse one that would not count."""
        requester = view.requester(ask.task_id)
        if verb is Verb.APPROVE:
            refuse_terms(ask.terms, by, self.rights(by), requester=requester, way_out=f"adjourn approve {ask.id}")
        return level_of(by, requester=requester)

    # --- signatures ------------------------------------------------------------------------------------------------

    def signed_reply(self, signed: Signed, *, carried_by: Principal) -> tuple[Principal, Decision]:
        """Return who signed a decision, and what; whoever brings it counts only if it is part of a run."""
        signer = self._signatures.signer(signed.document.encode(), signed.signature)
        return Principal(name=f"key:{signer}", inside_run=carried_by.inside_run), decision_of(signed)

    def require_genuine(self, view: View, call: Call) -> None:
        """Refuse a call whose bytes are not those that were let through, or not those that were signed where that is needed."""
        if digest_of(call.body) != call.digest:
            sentence = f"the bytes of call {call.id} were changed in the store after it was let through"
            raise NotAllowed(sentence, way_out="adjourn audit verify")
        self._require_signature(view, call)

    def _require_signature(self, view: View, call: Call) -> None:
        """Refuse a call whose approval needs a signature, or claims to have one, that does not cover its very bytes now."""
        ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
        if ask is None or not (ask.terms.signed or ask.level == Level.L2):
            return
        kept = view.document(ask.task_id, signed_name(ask))
        if kept is None:
            raise NotAllowed(f"call {call.id} has no signature that covers it", way_out=f"adjourn restart {call.task_id}")
        signed = msgspec.json.decode(kept, type=Signed)
        signer, decision = self.signed_reply(signed, carried_by=Principal(name="adjourn"))
        require_cover(decision, ask, call, asked_about=view.call(call.task_id, ask.call or 0))
        refuse_without(self.rights(signer).scopes, signer, Verb.APPROVE)

    def obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Say whether a call may not start because its bytes were changed, or the signature under its approval does not hold."""
        try:
            self.require_genuine(view, call)
        except NotAllowed as error:
            ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
            is_ours = digest_of(call.body) == call.digest
            command = command_of(call.body) if is_ours else plain_command(task.spec)
            opening = Opening(command=command, judgement=approved_on(ask.terms if ask else Terms()), is_gated=True)
            return Obstacle(call=call, ask=ask, opening=opening, changes=(error.sentence,))
        return None


def signed_name(ask: Ask) -> str:
    """Name the document of a task that keeps the signature under a reply."""
    return f"signed:{ask.id}"


def runs_as_shown(ask: Ask, call: Call, reply: Reply) -> bool:
    """Say whether an approval starts the very bytes that were shown: it brings no value of its own."""
    return call.tool != COMMAND or ask.gate or reply.text in {None, "", DEFAULT_VALUE}


def body_to_run(task: Task, ask: Ask, call: Call, reply: Reply) -> bytes:
    """Return the bytes that an approval starts: what was shown, with the value of the approval."""
    if runs_as_shown(ask, call, reply):
        return call.body
    return command_body(approved_command(task.spec, reply.text or DEFAULT_VALUE, files=command_of(call.body).files))


def decision_on(view: View, reply: Reply, *, now: int, lifetime: int) -> Decision:
    """Return the document that a person signs to give this reply."""
    ask = view.ask(reply.ask_id)
    call = view.call(ask.task_id, ask.call) if ask.call else None
    runs = _digest_to_run(view, ask, call, reply) if call and reply.verb is Verb.APPROVE else None
    return Decision(
        task=ask.task_id,
        reply=msgspec.structs.replace(reply, digest=call.digest if call else None),
        nonce=call.nonce if call else None,
        runs=runs,
        at=now,
        expires_at=now + lifetime,
    )


def _digest_to_run(view: View, ask: Ask, call: Call, reply: Reply) -> str:
    task = view.task(ask.task_id)
    if reply.edited is not None:
        from adjourn.controller.edits import as_edited  # seldom: most calls are approved as they are

        call, spec = as_edited(view, task, call, reply)
        task = msgspec.structs.replace(task, spec=spec)
    return digest_of(body_to_run(task, ask, call, reply))


def known_before(step: Steps, signed: Signed, decision: Decision) -> Ask | None:
    """Return the ask that this very decision settled, if it was recorded before; nothing changes then."""
    ask = step.tx.ask(decision.reply.ask_id)
    kept = step.tx.document(ask.task_id, signed_name(ask))
    return ask if kept and msgspec.json.decode(kept, type=Signed).document == signed.document else None


def admit(step: Steps, decision: Decision) -> None:
    """Refuse a signed decision that is late, or that was made for something else."""
    require_fresh(decision, now=step.now)
    ask = step.tx.ask(decision.reply.ask_id)
    require_same_call(decision, ask, step.tx.call(ask.task_id, ask.call) if ask.call else None)


def keep_signature(step: Steps, ask: Ask, signed: Signed, decision: Decision) -> None:
    """Keep a signature with the task, so that it can be verified again; it must cover what is about to run."""
    if decision.runs and step.tx.call(ask.task_id, ask.call or 0).digest != decision.runs:
        raise Conflict("what would run is not what was signed", way_out=f"adjourn show {ask.task_id}")
    step.tx.keep_document(ask.task_id, signed_name(ask), msgspec.json.encode(signed))


# --- receipts --------------------------------------------------------------------------------------------------------------


def receipts(view: View, asks: Sequence[Ask]) -> list[Receipt]:
    """Return where in the trail each of these replies is sealed; what was just recorded is found at its end."""
    by_task: dict[str, dict[str, Ask]] = {}
    for ask in asks:
        by_task.setdefault(ask.task_id, {})[ask.id] = ask
    found: dict[str, Receipt] = {}
    for task_id, wanted in by_task.items():
        found |= _receipts_of(view, task_id, wanted, limit=_EVENTS_OF_A_REPLY * len(wanted))
    return [found[ask.id] for ask in asks if ask.id in found]


def _receipts_of(view: View, task_id: str, wanted: dict[str, Ask], *, limit: int) -> dict[str, Receipt]:
    found: dict[str, Receipt] = {}
    for happened in view.last_events(task_id, limit=limit):
        ask = wanted.get(str(happened.event.facts.get("ask")))
        receipt = receipt_of(ask, happened) if ask and ask.id not in found else None
        if receipt:
            found[receipt.ask] = receipt
    return found if len(found) == len(wanted) or limit < 0 else _receipts_of(view, task_id, wanted, limit=-1)

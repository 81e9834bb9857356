"""What a signature under a reply is worth, when it comes and when its call is about to start."""

import msgspec

from adjourn.controller.reasons import Reasons
from adjourn.controller.transaction import Steps
from adjourn.controller.trust import Trust, body_to_run
from adjourn.core.ask import Ask, Principal, Reply, Verb
from adjourn.core.authority.scopes import LOGIN, Level, Scope, refuse_without
from adjourn.core.authority.signed import (
    Decision,
    Signed,
    decision_of,
    require_cover,
    require_fresh,
    require_same_call,
)
from adjourn.core.call import Call, digest_of
from adjourn.core.errors import Conflict, NotAllowed
from adjourn.core.reason import NoReason, Reason
from adjourn.core.states import AskState
from adjourn.ports.store import View
from adjourn.ports.world import Signatures

_CHANGED = "the bytes of call {} were changed in the store after it was let through"


class Proofs:
    """Asks those who know whose signatures count. Who cannot tell has said no."""

    def __init__(self, trust: Trust, signatures: Signatures) -> None:
        self._trust = trust
        self._signatures = signatures
        self._reasons = Reasons(trust)

    def signed_reply(self, signed: Signed, *, carried_by: Principal) -> tuple[Principal, Decision]:
        """Return who signed a decision, and what.

        Whoever brings it counts only if it is part of a run.
        """
        signer = self._signatures.signer(signed.document.encode(), signed.signature)
        return Principal(name=f"key:{signer}", inside_run=carried_by.inside_run), decision_of(
            signed
        )

    def require_genuine(self, view: View, call: Call) -> None:
        """Refuse a call whose bytes are not those that were let through, or not those that were signed where that is needed."""
        if digest_of(call.body) != call.digest:
            raise NotAllowed(_CHANGED.format(call.id), way_out="adjourn audit verify")
        self._require_signature(view, call)

    def _require_signature(self, view: View, call: Call) -> None:
        """Refuse a call whose approval needs a signature, or claims to have one, that does not cover its very bytes now."""
        ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
        if ask is None or not (ask.terms.signed or ask.level == Level.L2):
            return
        kept = view.document(ask.task_id, signed_name(ask))
        if kept is None:
            raise NotAllowed(
                f"call {call.id} has no signature that covers it",
                way_out=f"adjourn restart {call.task_id}",
            )
        signed = msgspec.json.decode(kept, type=Signed)
        signer, decision = self.signed_reply(signed, carried_by=Principal(name="adjourn"))
        require_cover(decision, ask, call, asked_about=view.call(call.task_id, ask.call or 0))
        refuse_without(self._trust.rights(signer).scopes, signer, Verb.APPROVE)

    def _require_standing(self, view: View, call: Call) -> None:
        """Refuse a call whose approval has lapsed.

        The login that gave it may not approve any more.
        """
        ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
        by = ask.settled_by if ask and ask.state is AskState.APPROVED else None
        if by is None or not by.startswith(LOGIN):
            return
        if Scope.APPROVE not in self._trust.rights(Principal(name=by)).scopes:
            way_out = f"adjourn show {call.task_id}"
            raise NotAllowed(f"{by} may not approve any more", way_out=way_out)

    def reason(self, view: View, call: Call) -> Reason | NoReason:
        """Return why a call may start.

        Its bytes, the signature under its approval and the trail are verified.
        """
        try:
            self.require_genuine(view, call)
            self._require_standing(view, call)
        except NotAllowed as error:
            ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
            return NoReason(why=error.sentence, ask=ask)
        return self._reasons.find(view, call)

    def reason_as_told(self, view: View, call: Call) -> Reason | NoReason:
        """Return the same a moment later.

        A signature that was just verified is not verified again.
        """
        if digest_of(call.body) != call.digest:
            return NoReason(why=_CHANGED.format(call.id))
        return self._reasons.find(view, call)


def signed_name(ask: Ask) -> str:
    """Name the document of a task that keeps the signature under a reply."""
    return f"signed:{ask.id}"


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
        # Seldom: most calls are approved as they are
        from adjourn.controller.edits import as_edited

        call, spec = as_edited(view, task, call, reply)
        task = msgspec.structs.replace(task, spec=spec)
    return digest_of(body_to_run(task, ask, call, reply))


def known_before(step: Steps, signed: Signed, decision: Decision) -> Ask | None:
    """Return the ask that this very decision settled, if it was recorded before.

    Nothing changes then.
    """
    ask = step.tx.ask(decision.reply.ask_id)
    kept = step.tx.document(ask.task_id, signed_name(ask))
    return (
        ask if kept and msgspec.json.decode(kept, type=Signed).document == signed.document else None
    )


def admit(step: Steps, decision: Decision) -> None:
    """Refuse a signed decision that is late, or that was made for something else."""
    require_fresh(decision, now=step.now)
    ask = step.tx.ask(decision.reply.ask_id)
    require_same_call(decision, ask, step.tx.call(ask.task_id, ask.call) if ask.call else None)


def keep_signature(step: Steps, ask: Ask, signed: Signed, decision: Decision) -> None:
    """Keep a signature with the task, so that it can be verified again.

    It must cover what is about to run.
    """
    if decision.runs and step.tx.call(ask.task_id, ask.call or 0).digest != decision.runs:
        raise Conflict(
            "what would run is not what was signed", way_out=f"adjourn show {ask.task_id}"
        )
    step.tx.keep_document(ask.task_id, signed_name(ask), msgspec.json.encode(signed))

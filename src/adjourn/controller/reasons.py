"""Finds why a call may start, in the store and in its trail.

What one says without the other is no reason.
"""

from collections.abc import Callable, Sequence

import msgspec

from adjourn.controller.context import Context
from adjourn.controller.transaction import Transaction, approval_of
from adjourn.core.ask import ApprovalAsk, Ask, Principal, Terms, Verb
from adjourn.core.authority.scopes import (
    LOGIN,
    Level,
    Scope,
    is_signer,
    person_of,
    refuse_terms,
    refuse_without,
)
from adjourn.core.authority.signed import (
    Decision,
    Signed,
    decision_of,
    key_of_signature,
    kind_of_proof,
    require_cover,
)
from adjourn.core.call import COMMAND, Call, digest_of
from adjourn.core.errors import NotAllowed
from adjourn.core.kept_documents import SIGNED, TaskDocument
from adjourn.core.people import GivenApproval
from adjourn.core.states import AskState
from adjourn.core.task import Run
from adjourn.core.trail.events import Event
from adjourn.core.trail.reason import (
    CallHistory,
    GateKind,
    Grounds,
    NoReason,
    Reason,
    gate_of,
    history_of,
    is_carried_on,
)
from adjourn.ports.store import View
from adjourn.ports.world import Signatures

_CHANGED = "the bytes of call {} were changed in the store after it was let through"
_FEW = 16  # events; most calls start soon after they were let through


def signature_of(ask: Ask, by: str) -> TaskDocument[Signed]:
    """Return where the signature under a reply is kept; of several approvals, one for each."""
    is_counted = isinstance(ask, ApprovalAsk) and ask.terms.is_counted
    return SIGNED.of(f"{ask.id}:{by}" if is_counted else ask.id)


def signed_reply(
    signatures: Signatures, signed: Signed, *, carried_by: Principal
) -> tuple[Principal, Decision]:
    """Return who signed a decision, and what; the signer is where its carrier is."""
    signer = signatures.signer(signed.document.encode(), signed.signature)
    by = Principal(
        name=f"{kind_of_proof(signed.signature)}:{signer}",
        inside_run=carried_by.inside_run,
        key=key_of_signature(signed.signature),
    )
    return by, decision_of(signed)


class TrailReader:
    """The trail of one task, newest first.

    A few events, and all of them only if those do not suffice.
    """

    def __init__(self, view: View, task_id: str) -> None:
        self._view = view
        self._task_id = task_id
        self._events = view.newest_events(task_id, limit=_FEW)
        self._is_whole = len(self._events) < _FEW

    def history(self, number: int) -> CallHistory:
        """Return what the trail records about a call."""
        found = history_of(number, self._events)
        if found.is_made or self._is_whole:
            return found
        return history_of(number, self.all())

    def approvals(self, ask: ApprovalAsk) -> list[Event]:
        """Return the approvals of an ask since its call was edited last, newest first."""
        found: list[Event] = []
        for event in self.all():
            facts = event.facts
            if event.kind == "approval_given" and facts.get("ask") == ask.id:
                found.append(event)
            is_start = event.kind == "ask_opened" and facts.get("ask") == ask.id
            if is_start or (event.kind == "call_edited" and facts.get("call") == ask.call):
                break
        return found

    def newest(self, is_it: Callable[[Event], bool]) -> Event | None:
        """Return the newest event that passes a test."""
        found = next(filter(is_it, self._events), None)
        if found or self._is_whole:
            return found
        return next(filter(is_it, self.all()), None)

    def beginning(self) -> Event | None:
        """Return the first event."""
        return (
            self._events[-1]
            if self._is_whole and self._events
            else self._view.beginning(self._task_id)
        )

    def all(self) -> list[Event]:
        """Return all events."""
        if not self._is_whole:
            self._events, self._is_whole = self._view.newest_events(self._task_id, limit=-1), True
        return self._events


def tell_start(
    tx: Transaction, run: Run, call: Call, reason: Reason, *, pid: int | None = None
) -> None:
    """Tell that a call starts, and what lets it start: `audit verify` looks for that."""
    tx.tell(
        call.task_id,
        "call_executing",
        run=run.number,
        call=call.number,
        digest=call.digest,
        pid=pid,
        attempt=call.attempt or None,
        grounds=reason.grounds.value,
        ask=reason.ask.id if reason.ask else None,
        approved=reason.approved,
    )


class Reasons:
    """Knows why calls may start, but for what the policy says."""

    def __init__(self, context: Context) -> None:
        self._trust = context.trust
        self._signatures = context.signatures

    def verify(self, view: View, call: Call) -> Reason | NoReason:
        """Return why a call may start.

        Verifies its bytes, the signature under its approval, the approver's scopes and the trail.
        """
        ask = approval_of(view, call)
        settled = ask.settlement if ask else None
        try:
            if digest_of(call.body) != call.digest:
                raise NotAllowed(_CHANGED.format(call.id), way_out="adjourn audit verify")
            if ask and ask.terms.is_counted:
                for given in ask.given:
                    self._verify_given(view, call, ask, given)
            elif ask and (ask.terms.signed or (settled and settled.level == Level.L2)):
                self._require_signature(view, call, ask, SIGNED.of(ask.id))
            # The login that approved may have lost its scope since
            by = settled.by if settled and settled.state is AskState.APPROVED else None
            rights = self._trust.rights(Principal(name=by)) if by and by.startswith(LOGIN) else None
            if rights and Scope.APPROVE not in rights.scopes:
                way_out = f"adjourn show {call.task_id}"
                raise NotAllowed(f"{by} may not approve any more", way_out=way_out)
        except NotAllowed as error:
            return NoReason(why=error.sentence, ask=ask)
        return self._find(view, call)

    def verify_again(self, view: View, call: Call) -> Reason | NoReason:
        """Return the same a moment after `verify`, without verifying the signature again."""
        if digest_of(call.body) != call.digest:
            return NoReason(why=_CHANGED.format(call.id))
        return self._find(view, call)

    def _verify_given(self, view: View, call: Call, ask: ApprovalAsk, given: GivenApproval) -> None:
        """Refuse a call if one of its approvals does not hold any more."""
        by = Principal(name=given.by)
        if ask.terms.signed or given.level == Level.L2 or is_signer(by):
            place = signature_of(ask, given.by)
            signer = self._require_signature(view, call, ask, place)
            if signer.name != given.by:
                raise NotAllowed(
                    f"{signer.name} signed the approval that is said to be by {given.by}",
                    way_out="adjourn audit verify",
                )
        if Scope.APPROVE not in self._trust.rights(by).scopes:
            raise NotAllowed(
                f"{given.by} may not approve any more", way_out=f"adjourn show {call.task_id}"
            )

    def _require_signature(
        self, view: View, call: Call, ask: ApprovalAsk, place: TaskDocument[Signed]
    ) -> Principal:
        """Return who signed an approval that covers a call, and may approve now, or refuse."""
        signed = place.read(view, ask.task_id)
        if signed is None:
            raise NotAllowed(
                f"call {call.id} has no signature that covers it",
                way_out=f"adjourn restart {call.task_id}",
            )
        carrier = Principal(name="adjourn")
        signer, decision = signed_reply(self._signatures, signed, carried_by=carrier)
        require_cover(decision, ask, call, asked_about=view.call(call.task_id, ask.call))
        refuse_without(self._trust.rights(signer).scopes, signer, Verb.APPROVE)
        return signer

    def _find(self, view: View, call: Call) -> Reason | NoReason:
        """Return why a call may start, as the store and the trail agree."""
        trail = TrailReader(view, call.task_id)
        ask = approval_of(view, call)
        history = trail.history(call.number)
        if history.started:
            run = history.started.facts.get("run")
            return NoReason(
                why=f"it was started before, in run {run}: what let it start is used up", ask=ask
            )
        if call.ask:
            return self._decision(view, trail, call, ask, history)
        if history.digest != call.digest:
            why = (
                "the audit trail has other bytes for this call"
                if history.digest
                else "the audit trail has no such call"
            )
            return NoReason(why=why)
        gate = gate_of(trail.beginning(), view.task(call.task_id).spec)
        if call.tool == COMMAND and gate in {GateKind.CALLS, GateKind.FREE_CALLS}:
            return Reason(grounds=Grounds.DRIVER)
        is_free = gate in {GateKind.NONE, GateKind.FREE_CALLS}
        return Reason(grounds=Grounds.UNGATED if is_free else Grounds.RULE)

    def _decision(
        self,
        view: View,
        trail: TrailReader,
        call: Call,
        ask: ApprovalAsk | None,
        history: CallHistory,
    ) -> Reason | NoReason:
        settled = ask.settlement if ask else None
        if ask is None or settled is None or settled.state is not AskState.APPROVED:
            return NoReason(why="nobody approved it", ask=ask)
        approved = trail.newest(
            lambda event: event.kind == "ask_approved" and event.facts.get("ask") == ask.id
        )
        if approved is None:
            return NoReason(why="the audit trail has no approval of it", ask=ask)
        if (approved.by, approved.facts.get("level")) != (settled.by, settled.level):
            why = (
                f"the audit trail says that {approved.by} approved it, the store says {settled.by}"
            )
            return NoReason(why=why, ask=ask)

        # Either it is the call that was approved, or one that goes on with the very same bytes
        digest = approved.facts.get("digest")
        if ask.call == call.number:
            is_approved = approved.facts.get("call") == call.number and digest == call.digest
        elif history.digest == call.digest:
            body = view.call(call.task_id, ask.call).body
            is_approved = digest_of(body) == digest and is_carried_on(call.body, body)
        else:
            is_approved = False
        if not is_approved:
            return NoReason(why="what was approved has other bytes", ask=ask)

        opened = trail.newest(
            lambda event: event.kind == "ask_opened" and event.facts.get("ask") == ask.id
        )
        needed = opened.facts.get("approvals") if opened else None
        approvals = [approved]
        if ask.terms.is_counted or needed is not None:
            approvals = trail.approvals(ask)
            if lack := _too_few(ask, approvals, needed=needed, digest=digest):
                return NoReason(why=lack, ask=ask)

        # Those who approved must still meet the terms of the ask
        if ask.terms != Terms():
            beginning = trail.beginning()
            for event in approvals:
                by = Principal(name=event.by)
                if ask.terms.is_counted and is_signer(by):
                    signed = signature_of(ask, by.name).read(view, ask.task_id)
                    key = key_of_signature(signed.signature) if signed else None
                    by = msgspec.structs.replace(by, key=key)
                rights = self._trust.rights(by)
                try:
                    refuse_terms(
                        ask.terms,
                        by,
                        rights,
                        requester=beginning.by if beginning else "",
                        override=str(event.facts.get("override") or ""),
                        way_out=f"adjourn approve {ask.id}",
                    )
                except NotAllowed as error:
                    return NoReason(why=error.sentence, ask=ask)
                person = person_of(ask.terms, by, rights) if ask.terms.is_counted else None
                if person != event.facts.get("person"):
                    why = f"{event.by} approved it as {event.facts.get('person')}, and is {person}"
                    return NoReason(why=why, ask=ask)
        return Reason(
            grounds=Grounds.DECISION,
            ask=ask,
            approved=None if digest == call.digest else str(digest),
        )


def _too_few(
    ask: ApprovalAsk, approvals: Sequence[Event], *, needed: str | int | None, digest: object
) -> str | None:
    """Return why the approvals of an ask do not suffice, by the store and by the trail."""
    told = {
        (event.facts.get("person"), event.by, event.facts.get("level"), event.facts.get("digest"))
        for event in approvals
    }
    kept = {(each.person, each.by, each.level, each.digest) for each in ask.given}
    if told != kept:
        return "the audit trail has other approvals of it than the store"
    people = {each.person for each in ask.given if each.digest == digest}
    wanted = max(ask.terms.approvals, needed if isinstance(needed, int) else 1)
    if len(people) < wanted or not ask.terms.is_counted:
        return f"it has {len(people)} of {wanted} approvals"
    return None

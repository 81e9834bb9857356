"""Decisions that somebody else carries here: signed ones, and those with an id of their own."""

from collections.abc import Sequence

import msgspec

from adjourn.controller.context import Context
from adjourn.controller.decisions import Decisions, require_fitting
from adjourn.controller.reasons import signature_of, signed_reply
from adjourn.controller.transaction import Transaction, call_asked_about
from adjourn.controller.trust import body_to_run
from adjourn.core.ask import ApprovalAsk, Ask, Principal, Reply, Verb
from adjourn.core.authority.signed import (
    LIFETIME,
    Decision,
    Signed,
    require_fresh,
    require_same_call,
)
from adjourn.core.call import Call, digest_of
from adjourn.core.errors import Conflict
from adjourn.core.kept_documents import USED_ONCE
from adjourn.ports.store import View


class Signing:
    """Records replies that somebody else carried here."""

    def __init__(self, context: Context, decisions: Decisions) -> None:
        self._context = context
        self._decisions = decisions

    def decide_signed(self, signed: Sequence[Signed], *, carried_by: Principal) -> list[Ask]:
        """Record signed decisions, all or none. Recording the same ones again changes nothing."""
        signatures = self._context.signatures
        proven = [signed_reply(signatures, each, carried_by=carried_by) for each in signed]
        with self._context.change() as tx:
            settled = [
                self._record(tx, each, signer, decision)
                for each, (signer, decision) in zip(signed, proven, strict=True)
            ]
            self._decisions.continue_tasks(tx, settled)
            return settled

    def _record(self, tx: Transaction, signed: Signed, by: Principal, decision: Decision) -> Ask:
        self._context.trust.authorise_change(tx.rows, by, decision.reply.verb)
        ask = tx.rows.ask(decision.reply.ask_id)
        place = signature_of(ask, by.name)
        kept = place.read(tx.rows, ask.task_id)
        is_void = isinstance(ask, ApprovalAsk) and ask.terms.is_counted and ask.is_open
        if is_void and isinstance(ask, ApprovalAsk):
            is_void = all(each.by != by.name for each in ask.given)
        if kept and kept.document == signed.document and not is_void:
            return ask  # recorded before

        require_fresh(decision, now=tx.now)
        require_same_call(decision, ask, call_asked_about(tx.rows, ask))
        ask = self._decisions.reply(tx, decision.reply, by=by)
        call = call_asked_about(tx.rows, ask)
        if decision.runs and (call is None or call.digest != decision.runs):
            raise Conflict(
                "what would run is not what was signed", way_out=f"adjourn show {ask.task_id}"
            )
        # Kept with the task: it is verified again when the call starts
        place.keep(tx.rows, ask.task_id, signed)
        return ask

    def decide_once(
        self, name: str, fingerprint: bytes, replies: Sequence[Reply], *, by: Principal
    ) -> list[Ask]:
        """Record replies under a name that serves once. The same ones again change nothing."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, replies[0].verb)
            used = USED_ONCE.read(tx.rows, name)
            if used is None:
                USED_ONCE.keep(tx.rows, fingerprint, name)
                return self._decisions.record(tx, replies, by=by)
            if used != fingerprint:
                raise Conflict(
                    "this id was used for another decision", way_out="send it with an id of its own"
                )
            return [tx.rows.ask(reply.ask_id) for reply in replies]

    def decision_on(self, reply: Reply, *, lifetime: int = LIFETIME) -> Decision:
        """Return the document that a person signs to give this reply."""
        reply = self._decisions.with_files(reply)
        now = self._context.clock()
        with self._context.store.read() as view:
            ask = view.ask(reply.ask_id)
            call = call_asked_about(view, ask)
            if isinstance(ask, ApprovalAsk) and ask.terms.is_counted:
                require_fitting(view, ask, reply)
            runs = None
            if call and isinstance(ask, ApprovalAsk):
                runs = _digest_to_run(view, ask, call, reply)
        return Decision(
            task=ask.task_id,
            reply=msgspec.structs.replace(reply, digest=call.digest if call else None),
            nonce=call.nonce if call else None,
            runs=runs,
            at=now,
            expires_at=now + lifetime,
        )


def _digest_to_run(view: View, ask: ApprovalAsk, call: Call, reply: Reply) -> str | None:
    """Return the digest of what an approval would start."""
    if reply.verb is not Verb.APPROVE:
        return None
    task = view.task(ask.task_id)
    if reply.edited is not None:
        # Loaded here: most calls are approved as they are
        from adjourn.controller.edits import as_edited

        call, spec = as_edited(view, task, call, reply)
        task = msgspec.structs.replace(task, spec=spec)
    return digest_of(body_to_run(task, ask, call, reply))

"""Decisions that came from elsewhere: signed ones, and those that serve once."""

from collections.abc import Sequence

from adjourn.controller import proofs
from adjourn.controller.context import Equipped
from adjourn.controller.transaction import Steps
from adjourn.core.ask import Ask, Principal, Reply
from adjourn.core.authority.signed import LIFETIME, Decision, Signed
from adjourn.core.errors import Conflict


class Signing(Equipped):
    """Records replies that somebody else carried here."""

    def decide_signed(self, signed: Sequence[Signed], *, carried_by: Principal) -> list[Ask]:
        """Record decisions that somebody signed, all or none.

        The same ones once more change nothing.
        """
        proven = [self._proofs.signed_reply(each, carried_by=carried_by) for each in signed]
        with self._steps() as step:
            settled = [
                self._reply_signed(step, each, *proof)
                for each, proof in zip(signed, proven, strict=True)
            ]
            return self._gone_on(step, settled)

    def _reply_signed(self, step: Steps, signed: Signed, by: Principal, decision: Decision) -> Ask:
        self._authorise(step, by, decision.reply.verb)
        known = proofs.known_before(step, signed, decision)
        if known:
            return known
        proofs.admit(step, decision)
        ask = self._reply(step, decision.reply, by=by)
        proofs.keep_signature(step, ask, signed, decision)
        return ask

    def decide_once(
        self, name: str, fingerprint: bytes, replies: Sequence[Reply], *, by: Principal
    ) -> list[Ask]:
        """Record replies that came under a name that serves once.

        The same ones once more change nothing.
        """
        with self._steps() as step:
            self._authorise(step, by, replies[0].verb)
            kept = step.tx.shared_document(name)
            if kept is None:
                step.tx.keep_shared_document(name, fingerprint)
                return self._decide(step, replies, by=by)
            if kept != fingerprint:
                raise Conflict(
                    "that id was used for another decision", way_out="send it with an id of its own"
                )
            return [step.tx.ask(reply.ask_id) for reply in replies]

    def decision_on(self, reply: Reply, *, lifetime: int = LIFETIME) -> Decision:
        """Return what a person signs to give that reply."""
        looked_at = self._looked_at(reply)
        with self._store.read() as view:
            return proofs.decision_on(view, looked_at, now=self._clock(), lifetime=lifetime)

"""What whoever decides gets in hand.

Which event of the trail holds the decision, and the seal of all up to it.
"""

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, Verb
from adjourn.core.states import AskState
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Happened

SHORT = 32  # as many hexadecimal digits of a seal are printed for people: 128 bits

_VERBS = {
    AskState.APPROVED: Verb.APPROVE,
    AskState.REJECTED: Verb.REJECT,
    AskState.ANSWERED: Verb.ANSWER,
    AskState.SETTLED: Verb.SETTLE,
}


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a recorded decision, as long as the trail is the one that it was recorded in."""

    ask: str
    task: str
    verb: Verb
    by: str
    level: str | None
    at: str
    place: int
    seal: str

    @property
    def token(self) -> str:
        """What `adjourn audit verify --receipt` takes."""
        return f"{self.place}:{self.seal[:SHORT]}"


def receipt_of(ask: Ask, happened: Happened) -> Receipt | None:
    """Return the receipt of a settled ask, if that event is the one that settled it."""
    if isinstance(ask, ApprovalAsk) and ask.is_open:
        return _receipt_of_approval(ask, happened)
    settled = ask.settlement
    verb = _VERBS.get(settled.state) if settled else None
    if settled is None or verb is None or happened.event.kind != f"ask_{settled.state}":
        return None
    return Receipt(
        ask=ask.id,
        task=ask.task_id,
        verb=verb,
        by=happened.event.by,
        level=settled.level,
        at=stamp(happened.event.at),
        place=happened.place,
        seal=happened.seal.hex(),
    )


def _receipt_of_approval(ask: ApprovalAsk, happened: Happened) -> Receipt | None:
    """Return the receipt of the newest approval of an ask that needs more of them."""
    newest = ask.given[-1] if ask.given else None
    is_it = happened.event.kind == "approval_given" and newest is not None
    if newest is None or not is_it or happened.event.by != newest.by:
        return None
    return Receipt(
        ask=ask.id,
        task=ask.task_id,
        verb=Verb.APPROVE,
        by=newest.by,
        level=newest.level,
        at=stamp(newest.at),
        place=happened.place,
        seal=happened.seal.hex(),
    )

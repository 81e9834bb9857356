"""What happened, for the audit trail.

One chain of digests per task, sealed into a chain of the store.
"""

from hashlib import sha256

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, Verb
from adjourn.core.call import canonical
from adjourn.core.states import AskState
from adjourn.core.task import Milliseconds
from adjourn.core.text.when import stamp

GENESIS = b"\0" * 32
SHORT = 32  # as many hexadecimal digits of a seal are printed for people: 128 bits
_VERBS = {
    AskState.APPROVED: Verb.APPROVE,
    AskState.REJECTED: Verb.REJECT,
    AskState.ANSWERED: Verb.ANSWER,
    AskState.SETTLED: Verb.SETTLE,
}


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to a task, by whom, and when."""

    task_id: str
    kind: str
    by: str
    at: Milliseconds
    facts: dict[str, str | int | None] = {}


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the store keeps it: of a forgotten one only the link in its chain is left."""

    event: Event | None
    link: bytes | None = None
    seal: bytes
    place: int = 0
    # Of a forgotten event whose task is still there: nobody may forget a part of a task
    task_id: str | None = None


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An event and its place in the trail."""

    place: int
    event: Event
    seal: bytes

    @property
    def id(self) -> str:
        """A name that no other event of any store has, the same whenever it is asked for."""
        return f"evt_{self.seal.hex()[:32]}"


def link_after(previous: bytes, event: Event) -> bytes:
    """Return the event's link in the chain of its task."""
    return sha256(previous + canonical(event)).digest()


def seal_after(previous: bytes, link: bytes) -> bytes:
    """Return the link's seal in the chain of the whole store."""
    return sha256(previous + link).digest()


class Chain:
    """Follows a trail from its first event on and checks that each is where it was written."""

    def __init__(self) -> None:
        self._heads: dict[str, bytes] = {}
        self.seal = GENESIS
        self.length = 0

    def holds(self, row: Sealed) -> bool:
        """Go one event further, unless it does not follow from those before it."""
        link = _next_link(self._heads, row)
        seal = seal_after(self.seal, link)
        self.length += 1
        is_next = not row.place or row.place == self.length
        if seal != row.seal or not is_next or (row.event is None and row.task_id is not None):
            return False
        self.seal = seal
        return True

    def head_of(self, task_id: str) -> bytes:
        """Return the link of the last event of a task."""
        return self._heads.get(task_id, GENESIS)


def first_broken(trail: list[Sealed]) -> int | None:
    """Return the index of the first event that does not follow from those before it, or None."""
    chain = Chain()
    return next((index for index, row in enumerate(trail) if not chain.holds(row)), None)


def forgotten(trail: list[Sealed], task_id: str) -> list[Sealed]:
    """Return the trail without what happened to a task.

    Its links stay, so that the chain still closes.
    """
    heads: dict[str, bytes] = {}
    rows: list[Sealed] = []
    for row in trail:
        link = _next_link(heads, row)
        is_its = row.event is not None and row.event.task_id == task_id
        rows.append(
            Sealed(event=None, link=link, seal=row.seal, place=row.place) if is_its else row
        )
    return rows


def _next_link(heads: dict[str, bytes], row: Sealed) -> bytes:
    if row.event is None:
        return row.link or GENESIS
    link = link_after(heads.get(row.event.task_id, GENESIS), row.event)
    heads[row.event.task_id] = link
    return link


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

"""Whether a trail is the one that was written.

The chain, the tasks and decisions that it records, and earlier receipts.
"""

from collections.abc import Iterable, Sequence

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask
from adjourn.core.errors import Misuse
from adjourn.core.states import AskState
from adjourn.core.trail.events import Chain, Event, Sealed
from adjourn.core.trail.reason import Grounds, missing_reason

_SETTLING = frozenset(f"ask_{state}" for state in AskState if state is not AskState.PENDING)
_SHORTEST = 16  # hexadecimal digits of a seal: fewer could match by accident


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that is not as it was written."""

    place: int | None
    task_id: str | None
    kind: str | None
    why: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt, and whether the trail still has what it stands for."""

    receipt: str
    holds: bool


class AuditVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said of a trail."""

    events: int
    forgotten: int
    head: str
    broken: Broken | None
    receipts: tuple[Checked, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing speaks against it."""
        return self.broken is None and all(each.holds for each in self.receipts)


class _Count(msgspec.Struct, kw_only=True):
    """How many approvals an ask needs, and who has approved which bytes since the last edit."""

    needed: int
    call: tuple[str, object]
    given: dict[str, tuple[str, str]] = {}

    def of(self, digest: str | None) -> int:
        """Return how many people approved these bytes, each by a name of their own."""
        return len({by for by, approved in self.given.values() if approved == digest})


class Auditor:
    """Reads a trail from its first event on and remembers what it says, up to the first break."""

    def __init__(self, receipts: Iterable[str] = ()) -> None:
        self._chain = Chain()
        self._receipts = [(text, *_place_and_seal(text)) for text in receipts]
        self._seals = {place: "" for _, place, _ in self._receipts}
        self._settled: dict[str, tuple[str, str, str | None]] = {}
        self._approvals: dict[str, str] = {}  # digests of what was approved, by ask
        self._gates: dict[str, str] = {}  # which gates tasks were started with
        self._counts: dict[str, _Count] = {}  # of asks that need several approvals
        self._forgotten = 0
        self._broken: Broken | None = None

    def read(self, rows: Sequence[Sealed]) -> bool:
        """Go on with the next rows; say whether it is worth going on."""
        for row in rows:
            if not self._chain.holds(row):
                self._broken = _broken_at(row)
                return False
            self._remember(row)
            if (
                row.event
                and row.event.kind == "call_executing"
                and not self._has_reason(row.place, row.event)
            ):
                return False
        return True

    def _has_reason(self, place: int, event: Event) -> bool:
        """Look for what let a call start, among all that was told before it."""
        why = missing_reason(
            event.facts, gate=self._gates.get(event.task_id), approvals=self._approvals
        )
        count = self._counts.get(str(event.facts.get("ask")))
        if why is None and event.facts.get("grounds") == Grounds.DECISION and count:
            have = count.of(self._approvals.get(str(event.facts.get("ask"))))
            if have < count.needed:
                call = event.facts.get("call")
                why = f"call {call} started with {have} of {count.needed} approvals"
        if why:
            self._broken = Broken(place=place, task_id=event.task_id, kind=event.kind, why=why)
        return why is None

    def _remember(self, row: Sealed) -> None:
        if row.place in self._seals:
            self._seals[row.place] = row.seal.hex()
        if row.event is None:
            self._forgotten += 1
        elif row.event.kind in _SETTLING:
            ask = str(row.event.facts.get("ask"))
            self._settled[ask] = _said_of_an_ask(row.event)
            if row.event.kind == "ask_approved" and "digest" in row.event.facts:
                self._approvals[ask] = str(row.event.facts["digest"])
        elif row.event.kind == "ask_opened" and "approvals" in row.event.facts:
            facts = row.event.facts
            self._counts[str(facts.get("ask"))] = _Count(
                needed=int(facts["approvals"] or 1), call=(row.event.task_id, facts.get("call"))
            )
        elif row.event.kind == "approval_given":
            facts = row.event.facts
            if count := self._counts.get(str(facts.get("ask"))):
                count.given[str(facts.get("person"))] = (row.event.by, str(facts.get("digest")))
        elif row.event.kind == "call_edited":
            # What was approved before an edit has other bytes
            for count in self._counts.values():
                if count.call == (row.event.task_id, row.event.facts.get("call")):
                    count.given.clear()
        elif row.event.kind == "task_created" and "gate" in row.event.facts:
            self._gates.setdefault(row.event.task_id, str(row.event.facts["gate"]))

    def compare(self, task_id: str, *, head: bytes, asks: Sequence[Ask]) -> bool:
        """Compare a task as it stands with what the trail records about it.

        Say whether it is worth going on.
        """
        if self._chain.head_of(task_id) != head:
            self._broken = _missing(task_id, "its newest events are not in the trail")
        for ask in asks:
            given = ask.given if isinstance(ask, ApprovalAsk) else ()
            kept = {each.person: (each.by, each.digest) for each in given}
            told = self._counts[ask.id].given if ask.id in self._counts else {}
            if kept != told and self._broken is None:
                self._broken = _missing(
                    task_id, f"ask {ask.id} has other approvals than the trail records"
                )
            if self._settled.get(ask.id) != _as_it_stands(ask) and self._broken is None:
                self._broken = _missing(
                    task_id, f"ask {ask.id} is {ask.state}, and the trail does not say so"
                )
        return self._broken is None

    def miss(self, why: str) -> None:
        """Note that something could not be compared, and why."""
        self._broken = self._broken or Broken(place=None, task_id=None, kind=None, why=why)

    def verdict(self) -> AuditVerdict:
        """Say what was found."""
        return AuditVerdict(
            events=self._chain.length,
            forgotten=self._forgotten,
            head=f"{self._chain.length}:{self._chain.seal.hex()}",
            broken=self._broken,
            receipts=tuple(
                Checked(receipt=text, holds=self._seals[place].startswith(seal))
                for text, place, seal in self._receipts
            ),
        )


def _place_and_seal(text: str) -> tuple[int, str]:
    place, _, seal = text.partition(":")
    is_proper = (
        place.isascii()
        and place.isdigit()
        and len(seal) >= _SHORTEST
        and set(seal) <= set("0123456789abcdef")
    )
    if not is_proper:
        raise Misuse(
            f"a receipt is PLACE:SEAL, with at least {_SHORTEST} digits of the seal",
            way_out="adjourn audit verify --help",
        )
    return int(place), seal


def _broken_at(row: Sealed) -> Broken:
    event = row.event
    return Broken(
        place=row.place,
        task_id=event.task_id if event else row.task_id,
        kind=event.kind if event else None,
        why="it does not follow from what stands before it"
        if event
        else "it cannot be read, or was taken out",
    )


def _missing(task_id: str, why: str) -> Broken:
    return Broken(place=None, task_id=task_id, kind=None, why=why)


def _said_of_an_ask(event: Event) -> tuple[str, str, str | None]:
    level = event.facts.get("level")
    return event.kind, event.by, str(level) if level is not None else None


def _as_it_stands(ask: Ask) -> tuple[str, str, str | None] | None:
    settled = ask.settlement
    return (f"ask_{settled.state}", settled.by, settled.level) if settled else None


# --- export ---------------------------------------------------------------------------------------


COLUMNS = ("place", "at", "task_id", "kind", "by", "level", "facts", "seal")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def harmless(cell: str) -> str:
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell

"""Why a call may start.

Somebody approved it, a rule lets it run, or its task was started without a gate.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from adjourn.core.ask import ApprovalAsk, AskKind, Verdict
from adjourn.core.call import AUTO_APPROVAL, Call, command_body, command_of
from adjourn.core.errors import UnreadableRow
from adjourn.core.task import Spec
from adjourn.core.trail.events import Event


class GateKind(StrEnum):
    """What a task's first event says of its gate."""

    COMMAND = "command"  # its command needs an approval, or a rule
    CALLS = "calls"  # its driver starts freely; each call of its agent needs an approval, or a rule
    FREE_CALLS = "free calls"  # the same, but the requester wanted no questions
    NONE = "none"  # of a command: the requester wanted no questions


class Grounds(StrEnum):
    """What lets a call start."""

    DECISION = "decision"
    RULE = "rule"  # if the policy says auto at that moment
    UNGATED = "ungated"  # unless the policy says never
    DRIVER = "driver"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call may start, as the store and its trail have it."""

    grounds: Grounds
    ask: ApprovalAsk | None = None
    # The digest of what was approved, where the call carries that on without its decision
    approved: str | None = None


class NoReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call may not start: in words for the person who is asked."""

    why: str
    ask: ApprovalAsk | None = None


# Every call enters the trail by one of these, which hold its number, or by the ask about it. Those
# that queue a task do so too,
# but only if `new`.
_MAKING = frozenset({"task_created", "call_proposed", "call_let_through"})
_QUEUEING = frozenset(
    {"task_queued", "task_resumed", "task_continued", "task_restarted", "run_settled"}
)
_STARTING = frozenset({"call_executing", "call_found"})
_GIVING_BACK = frozenset({"run_returned", "call_released"})


class CallHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What the trail records about one call."""

    is_made: bool  # the event by which it came into the trail was found
    digest: str | None  # of the bytes with which it came, where nobody was asked
    started: Event | None  # its start, unless it was given back since


def history_of(number: int, newest_first: Iterable[Event]) -> CallHistory:
    """Read what the trail records about a call, back to the event that created it."""
    started: Event | None = None
    is_given_back = False
    for event in newest_first:
        if event.facts.get("call") != number:
            continue
        if event.kind in _STARTING and not is_given_back:
            started = started or event
        is_to_run_again = (
            event.kind == "call_settled" and event.facts.get("verdict") == Verdict.RUN_AGAIN
        )
        if started is None and (event.kind in _GIVING_BACK or is_to_run_again):
            is_given_back = True
        if event.kind == "ask_opened":
            # That of an uncertain call is about one that was there before
            is_made = event.facts.get("ask_kind") == AskKind.APPROVAL
        else:
            is_made = event.kind in _MAKING or (
                event.kind in _QUEUEING and bool(event.facts.get("new"))
            )
        if is_made:
            return CallHistory(is_made=True, digest=_text(event, "digest"), started=started)
    return CallHistory(is_made=False, digest=None, started=started)


def is_known(place: str, call: Call, events: Iterable[Event]) -> bool:
    """Return whether the trail records the start of a call in that place.

    If the place is unknown, whether it records any start.
    """
    told = (
        event.facts
        for event in events
        if event.kind in _STARTING and event.facts.get("call") == call.number
    )
    places = {
        str(facts.get("place") or _place(call, facts.get("run"), facts.get("attempt")))
        for facts in told
    }
    return place in places if place else bool(places)


def _place(call: Call, run: str | int | None, attempt: str | int | None) -> str:
    return f"{call.id}.{attempt}" if attempt else f"{call.task_id}.{run}"


def _text(event: Event, fact: str) -> str | None:
    value = event.facts.get(fact)
    return value if isinstance(value, str) else None


def gate_of(beginning: Event | None, spec: Spec) -> GateKind:
    """Return which gate a task was started with, as its first event says.

    An older version did not say it: then its spec does.
    """
    if beginning is None or beginning.kind != "task_created":
        return GateKind.COMMAND
    if "gate" not in beginning.facts:
        return gate_for(spec)
    said = _text(beginning, "gate")
    return GateKind(said) if said in set(GateKind) else GateKind.COMMAND


def gate_for(spec: Spec) -> GateKind:
    """Return the gate that a new task gets."""
    if spec.is_driven:
        return GateKind.CALLS if spec.pause_on_approval else GateKind.FREE_CALLS
    return GateKind.COMMAND if spec.pause_on_approval else GateKind.NONE


def missing_reason(
    facts: Mapping[str, str | int | None], *, gate: str | None, approvals: Mapping[str, str]
) -> str | None:
    """Return why nothing allowed a start in the trail; None if something did.

    `approvals` are the digests of what was approved before it, by ask.
    """
    grounds, call = facts.get("grounds"), facts.get("call")
    if grounds == Grounds.DECISION:
        covered = approvals.get(str(facts.get("ask")))
        if covered is None:
            return f"call {call} started, and nobody had approved it"
        is_covered = covered in {facts.get("digest"), facts.get("approved")}
        return None if is_covered else f"call {call} started with other bytes than were approved"
    fitting_gates: dict[object, set[str | None]] = {
        Grounds.RULE: {None, *GateKind},
        Grounds.UNGATED: {None, GateKind.NONE, GateKind.FREE_CALLS},
        Grounds.DRIVER: {None, GateKind.CALLS, GateKind.FREE_CALLS},
        None: {None},
    }
    is_founded = gate in fitting_gates.get(grounds, set())
    return None if is_founded else f"call {call} started, and neither a decision nor a rule let it"


def is_carried_on(body: bytes, approved: bytes) -> bool:
    """Return whether a command is the approved one, without the decision in its arguments."""
    try:
        before, after = command_of(approved), command_of(body)
    except UnreadableRow:
        return False
    argv = before.argv
    decision = f"--approval-decision={before.env.get(AUTO_APPROVAL)}"
    if AUTO_APPROVAL in before.env and argv[-1:] == (decision,) and after.argv != argv:
        argv = argv[:-1]
    return (
        body
        == command_body(msgspec.structs.replace(before, argv=argv, env={}))
        == command_body(after)
    )

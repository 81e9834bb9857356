"""Why a call may start: somebody approved it, a rule lets it run, or its task was started without a gate."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from adjourn.core.ask import Ask, Verdict
from adjourn.core.call import AUTO_APPROVAL, command_body, command_of
from adjourn.core.events import Event


class GateKind(StrEnum):
    """What a task's first event says of its gate."""

    COMMAND = "command"  # its command needs an approval, or a rule
    CALLS = "calls"  # its driver starts freely; each call of its agent needs an approval, or a rule
    FREE_CALLS = "free calls"  # the same, but whoever started it wanted to be asked nothing
    NONE = "none"  # of a command: whoever started it wanted to be asked nothing


class Grounds(StrEnum):
    """What lets a call start."""

    DECISION = "decision"
    RULE = "rule"  # if the policy says auto at that moment
    UNGATED = "ungated"  # unless the policy says never
    DRIVER = "driver"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call may start, as the store and its trail have it."""

    grounds: Grounds
    ask: Ask | None = None
    approved: str | None = None  # the digest of what was approved, where the call carries that on without its decision


class NoReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call may not start: in words for the person who is asked."""

    why: str
    ask: Ask | None = None


# Every call enters the trail by one of these, which hold its number. Those that queue a task do so too, but only if `new`.
_MAKING = frozenset({"task_created", "call_proposed", "call_let_through", "ask_opened"})
_QUEUEING = frozenset({"task_queued", "task_resumed", "task_restarted", "run_settled"})
_GIVING_BACK = frozenset({"run_returned", "call_released"})


class CallHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What the trail tells of one call."""

    is_made: bool  # the event by which it came into the trail was found
    digest: str | None  # of the bytes with which it came, where nobody was asked
    started: Event | None  # its start, unless it was given back since


def history_of(number: int, newest_first: Iterable[Event]) -> CallHistory:
    """Read what the trail tells of a call, up to the event by which it came."""
    started: Event | None = None
    is_given_back = False
    for event in newest_first:
        if event.facts.get("call") != number:
            continue
        if event.kind == "call_executing" and not is_given_back:
            started = started or event
        if started is None and _gives_back(event):
            is_given_back = True
        if event.kind in _MAKING or (event.kind in _QUEUEING and event.facts.get("new")):
            return CallHistory(is_made=True, digest=_text(event, "digest"), started=started)
    return CallHistory(is_made=False, digest=None, started=started)


def starts_known(number: int, events: Iterable[Event]) -> set[tuple[int, int]]:
    """Return all starts of a call that the trail tells of: by run, and by attempt beside it (0 for a run's own call)."""
    told = (event for event in events if event.kind == "call_executing" and event.facts.get("call") == number)
    return {(int(event.facts.get("run") or 0), int(event.facts.get("attempt") or 0)) for event in told}


def _gives_back(event: Event) -> bool:
    is_to_run_again = event.kind == "call_settled" and event.facts.get("verdict") == Verdict.RUN_AGAIN
    return event.kind in _GIVING_BACK or is_to_run_again


def _text(event: Event, fact: str) -> str | None:
    value = event.facts.get(fact)
    return value if isinstance(value, str) else None


def gate_of(beginning: Event | None) -> GateKind:
    """Return which gate a task was started with. Where its first event does not say, it is the strictest."""
    said = _text(beginning, "gate") if beginning and beginning.kind == "task_created" else None
    return GateKind(said) if said in set(GateKind) else GateKind.COMMAND


def is_carried_on(body: bytes, approved: bytes) -> bool:
    """Say whether a command is the approved one without its decision, as it goes on after it left to wait."""
    try:
        before, after = command_of(approved), command_of(body)
    except msgspec.MsgspecError:
        return False
    argv = before.argv
    decision = f"--approval-decision={before.env.get(AUTO_APPROVAL)}"
    if AUTO_APPROVAL in before.env and argv[-1:] == (decision,) and after.argv != argv:
        argv = argv[:-1]
    return body == command_body(msgspec.structs.replace(before, argv=argv, env={})) == command_body(after)

"""A conversation with a model as it is kept: neutral, versioned, append-only, one JSON document a message."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from adjourn.core.driving import is_tame
from adjourn.core.errors import CannotResume

VERSION = 1
BEGAN = "began"  # names the document that says how many messages belong to sessions before the last restart
REACHED = "reached:"  # names the document that says how many messages there were when a run ended


def _version() -> int:
    return VERSION


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model wants done. Arguments that are not a JSON object stay the text that the model wrote."""

    id: str
    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict[str, Any])


class Thinking(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model thought, sealed by its provider; some want it back before tool results."""

    text: str
    id: str | None = None
    signature: str | None = None
    provider: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens of one answer, and what they cost in US dollars where that is known."""

    input: int = 0
    output: int = 0
    cost: str | None = None


class User(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="user"):
    """Words of a person."""

    text: str
    v: int = msgspec.field(default_factory=_version)


class Assistant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="assistant"):
    """One answer of the model."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    usage: Usage = Usage()
    model: str | None = None
    v: int = msgspec.field(default_factory=_version)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="tool"):
    """What became of a call, in the words that the model gets."""

    tool_call_id: str
    name: str
    text: str
    failed: bool = False
    v: int = msgspec.field(default_factory=_version)


Message = User | Assistant | ToolResult


class _Versioned(msgspec.Struct):
    v: int = 0


def encoded(message: Message) -> bytes:
    """Return a message as it is kept."""
    return msgspec.json.encode(message)


def decoded(body: bytes) -> Message:
    """Read a message back; one that a newer adjourn wrote is refused."""
    try:
        message: Message = msgspec.json.decode(body, type=Message)
    except msgspec.ValidationError:
        found = msgspec.json.decode(body, type=_Versioned).v
        raise CannotResume(f"the transcript has a message of version {found}; this adjourn reads {VERSION}") from None
    return message


def total(messages: Iterable[Message]) -> Usage:
    """Add up what a conversation used; the cost is unknown as soon as that of one answer is."""
    spent = [message.usage for message in messages if isinstance(message, Assistant)]
    costs = [usage.cost for usage in spent]
    cost = None if None in costs else str(sum((Decimal(each) for each in costs if each), Decimal(0)))
    return Usage(input=sum(usage.input for usage in spent), output=sum(usage.output for usage in spent), cost=cost)


def steps_of(messages: Iterable[Message]) -> int:
    """Count the answers of the model."""
    return sum(isinstance(message, Assistant) for message in messages)


def with_unique_ids(answer: Assistant, earlier: Sequence[Message]) -> Assistant:
    """Return the answer with a name for each call that no other call of the conversation has."""
    seen = {call.id for message in earlier if isinstance(message, Assistant) for call in message.tool_calls}
    calls: list[ToolCall] = []
    for call in answer.tool_calls:
        name = _unique(call.id, seen)
        seen.add(name)
        calls.append(msgspec.structs.replace(call, id=name))
    return msgspec.structs.replace(answer, tool_calls=tuple(calls))


def _unique(wanted: str, seen: set[str]) -> str:
    base = wanted if is_tame(wanted) else "call"
    candidates = (base, *(f"{base[:56]}_{number}" for number in range(2, len(seen) + 3)))
    return next(name for name in candidates if name not in seen)

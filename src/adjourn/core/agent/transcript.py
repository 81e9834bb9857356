"""A conversation with a model as it is kept.

Neutral, versioned, append-only, one JSON document a message.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from itertools import chain, count
from typing import Any

import msgspec

from adjourn.core.agent.calls import is_tame
from adjourn.core.call import canonical
from adjourn.core.errors import CannotResume

VERSION = 2  # the newest that is read


def _version() -> int:
    return 1


def _version_of_summaries() -> int:
    return 2


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model wants done.

    Arguments that are not a JSON object stay the text that the model wrote.
    """

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
    cached: int = 0  # tokens of the input that a cache had
    output: int = 0
    cost: str | None = None


class User(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="user"
):
    """Words of a person."""

    text: str
    # Whether they were said after the agent had left: by a reviewer, or with a resume
    follow_up: bool = False
    v: int = msgspec.field(default_factory=_version)


class Assistant(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="assistant"
):
    """One answer of the model."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    usage: Usage = Usage()
    model: str | None = None
    v: int = msgspec.field(default_factory=_version)


class ToolResult(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="tool"
):
    """How a call ended, in the words that the model gets."""

    tool_call_id: str
    name: str
    text: str
    failed: bool = False
    v: int = msgspec.field(default_factory=_version)


class Summary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="role", tag="summary"
):
    """The model's own summary of the first messages, which it gets in their place from here on.

    The messages themselves stay in the transcript.
    """

    text: str
    covers: int  # how many messages of the session
    usage: Usage = Usage()
    model: str | None = None
    v: int = msgspec.field(default_factory=_version_of_summaries)


Message = User | Assistant | ToolResult | Summary


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
        raise CannotResume(
            f"the transcript has a message of version {found}; this adjourn reads {VERSION}"
        ) from None
    return message


class Failures:
    """How often in a row the same call has failed, step by step."""

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}  # by id: the tool and the arguments of the newest answer
        self._before: dict[str, int] = {}  # how often those of the answer before had failed
        self._now: dict[str, int] = {}

    def add(self, message: "Message") -> None:
        """Count one message more. What a person says begins a new count."""
        match message:
            case User():
                self._before, self._now = {}, {}
            case Assistant():
                self._before, self._now = self._now, {}
                self._calls = {
                    call.id: f"{call.name} {canonical(call.arguments).decode()}"
                    for call in message.tool_calls
                }
            case ToolResult(failed=True):
                call = self._calls.get(message.tool_call_id, "")
                self._now[call] = self._before.get(call, 0) + 1
            case ToolResult() | Summary():
                pass

    @property
    def most(self) -> int:
        """How often in a row that call failed which failed most often."""
        return max(self._now.values(), default=0)


class Tally:
    """What a conversation came to so far.

    It is kept message by message: no step looks at all of them again.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.steps = 0  # answers of the model
        self.questions = 0  # those without a call
        self.names: set[str] = set()  # of all calls
        self._input = self._cached = self._output = 0
        self._cost: Decimal | None = Decimal(0)
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Count one message more."""
        if isinstance(message, Assistant):
            self.steps += 1
            self.questions += not message.tool_calls
            self.names.update(call.id for call in message.tool_calls)
            self._spend(message.usage)
        elif isinstance(message, Summary):
            self._spend(message.usage)

    def _spend(self, usage: Usage) -> None:
        self._input += usage.input
        self._cached += usage.cached
        self._output += usage.output
        self._cost = (
            self._cost + Decimal(usage.cost)
            if self._cost is not None and usage.cost is not None
            else None
        )

    @property
    def usage(self) -> Usage:
        """What all answers together used; the cost is unknown as soon as that of one is."""
        return Usage(
            input=self._input,
            cached=self._cached,
            output=self._output,
            cost=None if self._cost is None else str(self._cost),
        )


def with_unique_ids(answer: Assistant, taken: AbstractSet[str]) -> Assistant:
    """Return the answer with a name for each call that no other call of the conversation has."""
    names: list[str] = []
    for call in answer.tool_calls:
        names.append(_unique(call.id, taken, names))
    calls = zip(answer.tool_calls, names, strict=True)
    return msgspec.structs.replace(
        answer, tool_calls=tuple(msgspec.structs.replace(call, id=name) for call, name in calls)
    )


def _unique(wanted: str, taken: AbstractSet[str], names: Sequence[str]) -> str:
    base = wanted if is_tame(wanted) else "call"
    # Most models that name calls twice name all of them so: the first number that nobody has is the
    # number of names.
    candidates = chain(
        (base,), (f"{base[:56]}_{number}" for number in count(len(taken) + len(names) + 1))
    )
    return next(name for name in candidates if name not in taken and name not in names)

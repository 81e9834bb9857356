"""What Claude Code prints, line by line, as far as adjourn needs it."""

from collections.abc import Iterator
from typing import Any

import msgspec

# What the server says of a request that it would refuse again
_FINAL = frozenset({400, 401, 403, 404, 413, 422})
_LIMITS = frozenset({"error_max_turns", "error_max_budget_usd"})


class Began(msgspec.Struct, frozen=True):
    """A message of the model begins to stream."""

    message: str


class Called(msgspec.Struct, frozen=True):
    """The model calls a tool.

    `is_whole` says that its message does not stream: all of its calls are told at once.
    """

    message: str
    call: str
    tool: str
    arguments: dict[str, Any]
    is_whole: bool


class Stopped(msgspec.Struct, frozen=True):
    """A message of the model is there to its last word: all of its calls are known."""


class Said(msgspec.Struct, frozen=True):
    """The model says something."""

    text: str


class Returned(msgspec.Struct, frozen=True):
    """A call of the model, or of one of its subagents, has a result."""

    call: str
    is_error: bool
    content: bytes


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class Init(msgspec.Struct, frozen=True, kw_only=True):
    """How a session runs."""

    session_id: str = ""


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """What the program was started for begins.

    Where a session stopped at a call, that call is next.
    """

    state: str = ""


class HookBegan(msgspec.Struct, frozen=True, kw_only=True):
    """A hook runs, ours or another."""

    id: str = msgspec.field(name="hook_id", default="")
    moment: str = msgspec.field(name="hook_event", default="")


class HookEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A hook has ended, and this is what it said."""

    id: str = msgspec.field(name="hook_id", default="")
    moment: str = msgspec.field(name="hook_event", default="")
    said: str = msgspec.field(name="stdout", default="")
    complained: str = msgspec.field(name="stderr", default="")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended.

    One process may print several; only the last counts, except that a deferral ends everything.
    """

    subtype: str = ""
    is_error: bool = False
    result: str = ""
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    errors: tuple[Any, ...] = ()
    total_cost_usd: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether the model is done. An error of the API, too, says `success`."""
        return (
            self.subtype == "success"
            and not self.is_error
            and self.terminal_reason in {None, "completed"}
        )

    @property
    def is_deferral(self) -> bool:
        """Whether it stopped at a call that waits for a decision."""
        return self.stop_reason == "tool_deferred"

    @property
    def is_limit(self) -> bool:
        """Whether it stopped because it may do no more: turns, money, context."""
        return self.subtype in _LIMITS or self.terminal_reason == "prompt_too_long"

    @property
    def is_outage(self) -> bool:
        """Whether it failed by what may be otherwise soon: the network, a server, a tool's server.

        A key or a request that is refused is not, as long as nothing was answered.
        """
        is_of_the_api = self.terminal_reason == "api_error" and self.api_error_status not in _FINAL
        return is_of_the_api or self.stop_reason == "tool_deferred_unavailable"


Event = Began | Called | Stopped | Said | Returned | Starts | HookBegan | HookEnded | Init | Result
_OF_SYSTEM: dict[str | None, type[HookBegan | HookEnded | Init]] = {
    "hook_started": HookBegan,
    "hook_response": HookEnded,
    "init": Init,
}


class _Line(msgspec.Struct):
    type: str = ""
    subtype: str | None = None
    parent_tool_use_id: str | None = None
    event: msgspec.Raw = msgspec.Raw(b"{}")
    message: msgspec.Raw = msgspec.Raw(b"{}")


class _StreamEvent(msgspec.Struct):
    class Message(msgspec.Struct):
        id: str = ""

    type: str = ""
    message: Message = msgspec.field(default_factory=Message)


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}
    tool_use_id: str = ""
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw(b'""')


class _Message(msgspec.Struct):
    id: str = ""
    stop_reason: str | None = None
    content: list[_Block] | str = []


def events_of(line: bytes) -> list[Event]:
    """Return what a line tells.

    What is no event, or one that adjourn does not need, tells nothing.
    """
    try:
        return list(_events(msgspec.json.decode(line, type=_Line), line))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _events(read: _Line, line: bytes) -> Iterator[Event]:
    is_main = read.parent_tool_use_id is None
    match read.type:
        case "stream_event" if is_main:
            yield from _of_stream(msgspec.json.decode(read.event, type=_StreamEvent))
        case "assistant" if is_main:
            yield from _of_assistant(msgspec.json.decode(read.message, type=_Message))
        case "user":
            yield from _of_user(msgspec.json.decode(read.message, type=_Message))
        case "system" if read.subtype in _OF_SYSTEM:
            yield msgspec.json.decode(line, type=_OF_SYSTEM[read.subtype])
        case "command_lifecycle":
            yield msgspec.json.decode(line, type=Starts)
        case "result":
            yield msgspec.json.decode(line, type=Result)
        case _:
            return


def _of_stream(event: _StreamEvent) -> Iterator[Event]:
    if event.type == "message_start":
        yield Began(event.message.id)
    elif event.type == "message_stop":
        yield Stopped()


def _of_assistant(message: _Message) -> Iterator[Event]:
    # A streaming message has none yet when its blocks are told
    is_whole = message.stop_reason is not None
    for block in message.content if isinstance(message.content, list) else ():
        if block.type == "tool_use":
            yield Called(message.id, block.id, block.name, block.input, is_whole)
        elif block.type == "text" and block.text:
            yield Said(block.text)


def _of_user(message: _Message) -> Iterator[Event]:
    for block in message.content if isinstance(message.content, list) else ():
        if block.type == "tool_result":
            yield Returned(block.tool_use_id, bool(block.is_error), bytes(block.content))

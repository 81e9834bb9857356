"""What a scripted model says: a list of turns, each preceded by the faults that come first."""

from pathlib import Path
from typing import Any, Literal

import msgspec


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call that the model makes.

    Arguments given as a text are sent as they are, valid JSON or not.
    """

    name: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as OpenAI sends them: a JSON text."""
        return (
            self.arguments
            if isinstance(self.arguments, str)
            else msgspec.json.encode(self.arguments).decode()
        )


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong with one request.

    An HTTP error, a body that is no answer, or a connection that breaks off.
    """

    status: int = 200
    retry_after: str | None = None
    garbage: str | None = None  # a body that no client can read
    # Break off after this many events of the stream, or bytes of the body
    drop_after: int | None = None
    delay: float = 0.0
    too_long: bool = False  # the conversation is longer than the model takes


class Usage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many tokens the model says it used."""

    input: int = 100
    output: int = 10
    cached: int = 0  # of the input


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of the model: words, tool calls, or both. Neither is an empty answer."""

    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    faults: tuple[Fault, ...] = ()  # one for each of the first requests that this turn would answer
    usage: Usage = Usage()
    delay: float = 0.0
    stop: Literal["length"] | None = None  # cut off at the token limit


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole play.

    A conversation with n answers so far gets turn n, so one script serves many conversations and
    repeats.
    """

    turns: tuple[Turn, ...]


def read(path: Path) -> Script:
    """Read a script file: `{"turns".

    [{"text": …, "calls": [{"name": …, "arguments": {…}}]}, …]}`.
    """
    return msgspec.json.decode(path.read_bytes(), type=Script)


def named(turn: Turn, number: int) -> Turn:
    """Return the turn with an id for each of its calls: the same ids however often it is played."""
    calls = tuple(
        call if call.id else msgspec.structs.replace(call, id=f"call_{number + 1}_{place}")
        for place, call in enumerate(turn.calls, 1)
    )
    return msgspec.structs.replace(turn, calls=calls)

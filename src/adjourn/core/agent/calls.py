"""What a driver puts before the policy for its agent, and what it gets back."""

import re
from typing import Any

import msgspec

from adjourn.core.ask import ApprovalAsk, QuestionAsk
from adjourn.core.call import Call, canonical

_TAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_REJECTED = "TOOL_CALL_REJECTED"
_OUTPUT = 64 * 1024  # characters of what a call printed that its agent is told


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A call that an agent wants to make."""

    tool: str
    body: bytes  # as `tool_body` makes it
    label: str | None = None  # what the agent calls it
    words: str | None = None  # what the agent says along with it
    read_only: bool = False  # its driver can make it without changing anything
    # The schema, as JSON, of arguments that the driver takes in the place of the agent's
    editable: bytes | None = None


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a batch, as it stands.

    One without a `call` is read-only and was let through: its driver just makes it.
    """

    call: Call | None = None
    ask: ApprovalAsk | QuestionAsk | None = None
    result: "CallResult | None" = None
    original: bytes | None = None  # the call's bytes before a person edited them

    @property
    def rejection(self) -> str:
        """What the model gets for a rejected call, with the reason that somebody gave."""
        return rejection(
            (self.ask.reply if self.ask else None) or (self.result.error if self.result else None)
        )


def rejection(reason: str | None) -> str:
    """Return what a model gets for a call that was turned down.

    The reason stands on the next line, if there is one.
    """
    return f"{_REJECTED}\n{reason}" if reason else _REJECTED


def is_rejection(words: str) -> bool:
    """Return whether these are the words that a model gets for a rejected call."""
    return words.split("\n", 1)[0] == _REJECTED


class CallResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call gave back."""

    ok: bool
    output: str = ""
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    left_out: int = 0  # characters of the output that are not here
    settled_by: str | None = None  # whose word it is, where nobody saw the call end


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a model took for its work."""

    input_tokens: int = 0
    cached_input_tokens: int = 0  # those of them that a cache had, which cost less
    output_tokens: int = 0
    cost: str | None = None  # in US dollars, as a decimal number; None where it is not known

    def plus(self, other: "Spent") -> "Spent":
        """Add them up; the cost is unknown if one cost is, unless that one used nothing."""
        from decimal import Decimal  # slow to load, and only who runs agents adds

        spenders = [one for one in (self, other) if one.input_tokens or one.output_tokens]
        costs = [one.cost for one in spenders]
        return Spent(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=None if None in costs else str(sum(Decimal(cost) for cost in costs if cost)),
        )


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run says of itself."""

    message: str | None = None
    steps: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost: str | None = None
    # Of a run that a limit stopped: the options with which a resume gets past it
    resume_with: tuple[str, ...] = ()
    task: Spent | None = None  # what all runs of the task took, this one included
    details: dict[str, Any] = {}

    @property
    def spent(self) -> Spent:
        """What the run took."""
        return Spent(
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
            cost=self.cost,
        )


class SessionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a resume of an agent needs, and how it stands."""

    thing: str
    fine: bool
    says: str


class _Body(msgspec.Struct):
    arguments: msgspec.Raw
    tool: str
    files: dict[str, str] = {}


def is_tame(label: str) -> bool:
    """Say whether an agent's name for a call can be said at a command line without a thought."""
    return re.fullmatch(_TAME, label) is not None


def looked_at(body: bytes, files: dict[str, str]) -> bytes:
    """Return the bytes of a call together with the files that it was judged with."""
    if not files:
        return body
    parts = msgspec.json.decode(body)
    return canonical(parts | {"files": files})


def files_of(body: bytes) -> dict[str, str]:
    """Return the files that a call was judged with."""
    return msgspec.json.decode(body, type=_Body).files


def cut(output: str) -> tuple[str, int]:
    """Return a long output's beginning and end, and how much is left out between them."""
    if len(output) <= _OUTPUT:
        return output, 0
    half = _OUTPUT // 2
    left_out = len(output) - 2 * half
    return f"{output[:half]}\n[… {left_out:,} characters left out …]\n{output[-half:]}", left_out

"""What a task remembers of its Codex thread between two runs."""

from typing import Any

import msgspec

from adjourn.core import kept_documents

DOCUMENT = kept_documents.CODEX.name
SESSION = kept_documents.SESSION.name  # names the document with the copy of the thread's file


class Usage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens of a whole thread; Codex counts on across resumes."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    def plus(self, more: "Usage") -> "Usage":
        """Return both together."""
        return Usage(
            **{name: getattr(self, name) + getattr(more, name) for name in self.__struct_fields__}
        )

    def since(self, before: "Usage") -> "Usage":
        """Return what was used after another count; a count that went back began anew."""
        if self.input_tokens < before.input_tokens:
            return self
        return Usage(
            **{name: getattr(self, name) - getattr(before, name) for name in self.__struct_fields__}
        )


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was put before the policy.

    Codex's name for it, and the call of the model that it is part of.
    """

    item: str
    call: str
    name: str  # adjourn's name for it


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a script of the model had run before the script was stopped."""

    call: str
    line: str
    output: str = ""
    exit_code: int | None = None

    @property
    def told(self) -> str:
        """What ran and how it ended, on one line."""
        return f"{self.line} (exit code {self.exit_code})"


class Queried(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model, the call that it is part of, and the ask that it became."""

    call: str
    id: str
    ask: str


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the thread is, and what Codex has still to be told."""

    session: str  # adjourn's own; a restart begins another
    thread: str
    place: str  # the thread's file below Codex's home
    version: str = ""
    usage: Usage = Usage()
    answers: int = 0  # of the model
    put: tuple[Put, ...] = ()
    # Calls of which Codex was told that they were approved, and that it shall repeat them
    told: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()  # calls that were ended while the model had gone on
    ran: tuple[Ran, ...] = ()
    queried: tuple[Queried, ...] = ()
    keys: tuple[str, ...] = ()  # of all questions so far: no two share one
    reviews: int = 0  # wishes of reviewers that a turn has answered


def memory_of(body: bytes | None, *, session: str) -> Memory | None:
    """Read what was remembered, if it belongs to this session."""
    found = msgspec.json.decode(body, type=Memory) if body else None
    return found if found and found.session == session else None


def usage_of(params: dict[str, Any]) -> Usage:
    """Read the thread's total from a notification."""
    return msgspec.convert(params["tokenUsage"]["total"], Usage)

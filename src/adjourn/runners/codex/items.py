"""What Codex says of one thing in its thread: a command, a change of files, a tool of an MCP server, or words."""

from typing import Any

import msgspec

ACTS = frozenset({"commandExecution", "fileChange", "mcpToolCall"})
_HAPPENED = frozenset({"completed", "failed"})


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How one file would change."""

    path: str
    kind: Any
    diff: str = ""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One of the answers that the model offers."""

    label: str
    description: str = ""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A question along with words, for whose answer the model does not wait."""

    title: str = ""
    options: tuple[Option | str, ...] | None = ()


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One item of a thread, as far as anybody here needs it."""

    id: str
    type: str
    status: str = ""
    text: str = ""
    questions: tuple[Offer, ...] | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: tuple[Change, ...] = ()
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    result: Any = None
    error: Any = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun and not ended."""
        return self.status == "inProgress"

    @property
    def has_acted(self) -> bool:
        """Whether it did something, however it ended."""
        return self.type in ACTS and self.status in _HAPPENED

    @property
    def what(self) -> str:
        """What it did, in a word or a line."""
        return self.command or self.tool or self.type

"""The tokens that a thread of Codex has used."""

from typing import Any

import msgspec


class CodexUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens of a whole thread; Codex counts on across resumes."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    def plus(self, more: "CodexUsage") -> "CodexUsage":
        """Return both together."""
        return CodexUsage(
            **{name: getattr(self, name) + getattr(more, name) for name in self.__struct_fields__}
        )

    def since(self, before: "CodexUsage") -> "CodexUsage":
        """Return what was used after another count; a count that went back started at zero."""
        if self.input_tokens < before.input_tokens:
            return self
        return CodexUsage(
            **{name: getattr(self, name) - getattr(before, name) for name in self.__struct_fields__}
        )


def usage_of(params: dict[str, Any]) -> CodexUsage:
    """Read the thread's total from a notification."""
    return msgspec.convert(params["tokenUsage"]["total"], CodexUsage)

"""One thing that the agent can do, and how its arguments must look."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.edit.argument_schema import problems
from adjourn.runners.agent.tools.bounds import PathBounds

Arguments = dict[str, Any]


class ToolFailed(Exception):
    """A call did not work; the model is told why, and goes on."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it, and what carries it out where adjourn does so itself."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool = False
    is_checked: bool = True  # whether the arguments are checked here; others check their own
    act: Callable[[PathBounds, Arguments], str] | None = None
    # Adds what a person should see, and what is checked later
    prepare: Callable[[PathBounds, Arguments], Arguments] | None = None


class ForeignTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of somebody else: how the model knows it, and how its owner does."""

    name: str
    description: str
    schema: dict[str, object]
    owned_name: str
    server: str | None = None  # the MCP server that has it; none for a Python function


def require_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the tool does not take."""
    found = list(problems(arguments, tool.schema)) if tool.is_checked else []
    if found:
        raise ToolFailed(f"{tool.name}: {'; '.join(found)}")


def schema(required: Sequence[str] = (), **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Describe an object with these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str) -> Mapping[str, Any]:
    """Describe a text."""
    return {"type": "string", "description": description}


def number(description: str, *, least: int = 1) -> Mapping[str, Any]:
    """Describe a whole number."""
    return {"type": "integer", "minimum": least, "description": description}


def capped(words: str, limit: int, *, of: str) -> str:
    """Keep the head and the tail of what is too long for a model, and say how much is missing."""
    if len(words) <= limit:
        return words
    tail = limit // 4
    left_out = len(words) - limit
    return (
        f"{words[: limit - tail]}\n[{left_out} of {len(words)} characters of {of} left out "
        f"here]\n{words[-tail:]}"
    )

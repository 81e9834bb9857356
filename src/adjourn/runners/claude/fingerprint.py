"""When two calls are the same: same tool, same input, same directory."""

from typing import Any

import msgspec

from adjourn.core.call import arguments_of, digest_of, tool_body
from adjourn.runners.claude.hook import Request

CWD = "(cwd)"  # beside the input, where a call would be made elsewhere than in the workspace
_READ_ONLY = frozenset(
    {"Glob", "Grep", "LS", "ListAgents", "NotebookRead", "Read", "StructuredOutput", "TodoRead", "TodoWrite", "ToolSearch"}
)
_TYPES: dict[type[object], str] = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def arguments_in(request: Request, *, workspace: str) -> dict[str, Any]:
    """Return what a person is shown and what is decided: the input, and the directory where it is not the workspace."""
    return request.tool_input if request.cwd == workspace else {**request.tool_input, CWD: request.cwd}


def fingerprint(request: Request, *, workspace: str) -> str:
    """Return what two equal calls have in common, whatever Claude Code calls each of them."""
    return digest_of(tool_body(request.tool_name, arguments_in(request, workspace=workspace)))


def input_of(body: bytes) -> dict[str, Any]:
    """Return the input of a call as it was decided."""
    return {name: value for name, value in arguments_of(body).items() if name != CWD}


def reads_only(tool: str) -> bool:
    """Say whether a tool of Claude Code changes nothing."""
    return tool in _READ_ONLY


def editable(arguments: dict[str, Any]) -> bytes:
    """Return the schema of what a person may make of the arguments: the same ones, each of its type."""
    properties: dict[str, Any] = {name: _schema_of(value) for name, value in arguments.items()}
    fixed = {CWD: {"enum": [arguments[CWD]]}} if CWD in arguments else {}  # where it is made is not for an edit to say
    schema = {"type": "object", "properties": properties | fixed, "required": list(fixed), "additionalProperties": False}
    return msgspec.json.encode(schema)


def _schema_of(value: object) -> dict[str, str]:
    return {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}

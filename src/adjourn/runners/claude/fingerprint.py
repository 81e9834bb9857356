"""When two calls are the same: same tool, same input, same directory."""

import os
from typing import Any

import msgspec

from adjourn.core.call import arguments_of, digest_of, tool_body
from adjourn.runners.hook import HookRequest

CWD = "(cwd)"  # beside the input, where a call would be made elsewhere than in the workspace
_READ_ONLY = frozenset(
    {
        "Glob",
        "Grep",
        "LS",
        "ListAgents",
        "NotebookRead",
        "Read",
        "StructuredOutput",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
    }
)
_PATHS = ("file_path", "notebook_path", "path")
_BYTE_ORDER_MARK = "\ufeff"  # a blank to JavaScript
_TYPES: dict[type[object], str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def arguments_in(request: HookRequest, *, workspace: str) -> dict[str, Any]:
    """Return what a person is shown and what is decided.

    The input, and the directory where it is not the workspace.
    """
    return (
        request.tool_input if request.cwd == workspace else {**request.tool_input, CWD: request.cwd}
    )


def fingerprint(request: HookRequest, *, workspace: str) -> str:
    """Return what two equal calls have in common, whatever Claude Code calls each of them."""
    return digest_of(tool_body(request.tool_name, arguments_in(request, workspace=workspace)))


def input_of(body: bytes) -> dict[str, Any]:
    """Return the input of a call as it was decided."""
    return {name: value for name, value in arguments_of(body).items() if name != CWD}


def reads_only(request: HookRequest, *, workspace: str) -> bool:
    """Say whether a call changes nothing and looks at nothing outside of the workspace."""
    if request.tool_name not in _READ_ONLY:
        return False
    names = (*_PATHS, "pattern") if request.tool_name == "Glob" else _PATHS
    paths = [request.tool_input[name] for name in names if name in request.tool_input]
    return all(
        isinstance(path, str)
        and _is_plain(path)
        and _is_inside(os.path.join(request.cwd, path), workspace)
        for path in paths
    )


def _is_plain(path: str) -> bool:
    """Say whether a path means what it says.

    Claude Code takes blanks off its ends, and `~` for the home.
    """
    return path == path.strip().strip(_BYTE_ORDER_MARK) and not path.startswith("~")


def _is_inside(path: str, directory: str) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(directory)
    return real == root or real.startswith(root.rstrip("/") + "/")


def editable(arguments: dict[str, Any]) -> bytes:
    """Return the schema of what a person may make of the arguments.

    The same ones, each of its type.
    """
    properties: dict[str, Any] = {name: _schema_of(value) for name, value in arguments.items()}
    # Where it is made is not for an edit to say
    fixed = {CWD: {"enum": [arguments[CWD]]}} if CWD in arguments else {}
    schema = {
        "type": "object",
        "properties": properties | fixed,
        "required": list(fixed),
        "additionalProperties": False,
    }
    return msgspec.json.encode(schema)


def _schema_of(value: object) -> dict[str, str]:
    return {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}

"""Tools that others bring: MCP servers and Python functions.

They are looked up once a task, and kept with it.
"""

import inspect
import re
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_type_hints

import msgspec

from adjourn.core.errors import Misuse
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.bounds import PathBounds
from adjourn.runners.agent.tools.tool import Arguments, ForeignTool, Tool, ToolFailed

_LONGEST_NAME = 64


def look_up(setup: AgentSetup, *, workspace: str) -> list[ForeignTool]:
    """Return the tools of every server and every installed package, or raise Misuse."""
    found: list[ForeignTool] = []
    for name, server in setup.servers.items():
        try:
            # Brings the mcp package, so only where there is a server
            from adjourn.runners.agent.tools import mcp
        except ModuleNotFoundError as error:
            sentence = (
                f"the MCP server {name} needs what is not installed: {error.name}; pip "
                "install 'adjourn[mcp]'"
            )
            raise Misuse(sentence, way_out="pip install 'adjourn[mcp]'") from error
        found += mcp.tools_of(name, server, workspace=workspace)
    if setup.functions:
        found += tools()
    return _renamed(found)


def _renamed(found: Iterable[ForeignTool]) -> list[ForeignTool]:
    """Give each a name that every model takes, and no two the same."""
    by_name: dict[str, ForeignTool] = {}
    for each in found:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", each.name)[:_LONGEST_NAME]
        by_name.setdefault(name, msgspec.structs.replace(each, name=name))
    return list(by_name.values())


def as_tool(foreign: ForeignTool, setup: AgentSetup) -> Tool:
    """Return a tool of somebody else as one of the agent's."""

    def act(place: PathBounds, arguments: Arguments) -> str:
        if foreign.server is None:
            return call(foreign.owned_name, arguments)
        # Most commands start without it (bench start)
        from adjourn.runners.agent.tools import mcp

        server = setup.servers.get(foreign.server)
        if server is None:
            raise ToolFailed(f"the server {foreign.server} is not set up any more")
        return mcp.call(server, foreign.owned_name, arguments, workspace=place.workspace)

    return Tool(
        name=foreign.name,
        description=foreign.description,
        schema=foreign.schema,
        act=act,
        is_checked=False,
    )


def encoded(found: list[ForeignTool]) -> bytes:
    """Return tools as they are kept with a task."""
    return msgspec.json.encode(found)


def decoded(body: bytes) -> list[ForeignTool]:
    """Read them back."""
    return msgspec.json.decode(body, type=list[ForeignTool])


GROUP = "adjourn.tools"


def tools() -> list[ForeignTool]:
    """Describe every function that is installed."""
    return [
        _described(entry)
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    ]


def _described(entry: EntryPoint) -> ForeignTool:
    try:
        function = entry.load()
        (shape,), parts = msgspec.json.schema_components([_shape(function)])
    except Exception as error:
        sentence = (
            f"the tool {entry.name} ({entry.value}) cannot be used: {type(error).__name__}: {error}"
        )
        raise Misuse(sentence, way_out="fix the package, or uninstall it") from error
    own = parts.pop(shape["$ref"].rpartition("/")[2])
    schema: dict[str, object] = {**own, **({"$defs": parts} if parts else {})}
    schema.pop("title", None)
    return ForeignTool(
        name=entry.name,
        description=inspect.getdoc(function) or entry.name,
        schema=schema,
        owned_name=entry.name,
    )


def _shape(function: Callable[..., object]) -> type[msgspec.Struct]:
    """Return what a function takes, as a type that JSON can be checked against."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name, Any)
        given = parameter.default is not inspect.Parameter.empty
        fields.append((name, kind, parameter.default) if given else (name, kind))
    return msgspec.defstruct(
        "Arguments", fields, kw_only=True, forbid_unknown_fields=True, namespace={"__doc__": None}
    )


def call(name: str, arguments: Arguments) -> str:
    """Call a function, and return what it returns as text."""
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        raise ToolFailed(f"the function {name} is not installed any more")
    function = found[0].load()
    try:
        taken = msgspec.convert(arguments, _shape(function))
    except msgspec.ValidationError as error:
        raise ToolFailed(f"{name}: {error}") from error
    try:
        returned = function(**{field: getattr(taken, field) for field in taken.__struct_fields__})
    except Exception as error:
        raise ToolFailed(f"{type(error).__name__}: {error}") from error
    return (
        returned
        if isinstance(returned, str)
        else msgspec.json.encode(returned, enc_hook=str).decode()
    )

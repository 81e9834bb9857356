"""Tools that others bring: MCP servers and Python functions. They are looked up once a task, and kept with it."""

import re
from collections.abc import Iterable

import msgspec

from adjourn.core.errors import Misuse
from adjourn.runners.agent.setup import Setup
from adjourn.runners.agent.tools.place import Place
from adjourn.runners.agent.tools.tool import Arguments, Tool, ToolFailed

_LONGEST_NAME = 64


class Foreign(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of somebody else: how the model knows it, and how its owner does."""

    name: str
    description: str
    schema: dict[str, object]
    owned_name: str
    server: str | None = None  # the MCP server that has it; none for a Python function


def look_up(setup: Setup, *, workspace: str) -> list[Foreign]:
    """Ask every server and every installed package which tools it has, or say which one cannot be asked."""
    found: list[Foreign] = []
    for name, server in setup.servers.items():
        try:
            from adjourn.runners.agent.tools import mcp  # brings the mcp package, so only where there is a server
        except ModuleNotFoundError as error:
            sentence = f"the MCP server {name} needs what is not installed: {error.name}; pip install 'adjourn[mcp]'"
            raise Misuse(sentence, way_out="pip install 'adjourn[mcp]'") from error
        found += mcp.tools_of(name, server, workspace=workspace)
    if setup.functions:
        from adjourn.runners.agent.tools import functions

        found += functions.tools()
    return _renamed(found)


def _renamed(found: Iterable[Foreign]) -> list[Foreign]:
    """Give each a name that every model takes, and no two the same."""
    by_name: dict[str, Foreign] = {}
    for each in found:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", each.name)[:_LONGEST_NAME]
        by_name.setdefault(name, msgspec.structs.replace(each, name=name))
    return list(by_name.values())


def as_tool(foreign: Foreign, setup: Setup) -> Tool:
    """Return a tool of somebody else as one of the agent's."""

    def act(place: Place, arguments: Arguments) -> str:
        if foreign.server is None:
            from adjourn.runners.agent.tools import functions

            return functions.call(foreign.owned_name, arguments)
        from adjourn.runners.agent.tools import mcp

        server = setup.servers.get(foreign.server)
        if server is None:
            raise ToolFailed(f"the server {foreign.server} is not set up any more")
        return mcp.call(server, foreign.owned_name, arguments, workspace=place.workspace)

    return Tool(name=foreign.name, description=foreign.description, schema=foreign.schema, act=act, is_checked=False)


def encoded(found: list[Foreign]) -> bytes:
    """Return tools as they are kept with a task."""
    return msgspec.json.encode(found)


def decoded(body: bytes) -> list[Foreign]:
    """Read them back."""
    return msgspec.json.decode(body, type=list[Foreign])

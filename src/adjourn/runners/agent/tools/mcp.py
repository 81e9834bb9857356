"""Tools of MCP servers.

A server is started for a call and ends with it: nothing of it outlives the call's process.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import msgspec
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from mcp_types import Tool as Described

from adjourn.core.errors import Misuse
from adjourn.runners.agent.options import Server
from adjourn.runners.agent.tools.tool import Arguments, ForeignTool, ToolFailed

_START_SECONDS = 60.0
_MOST_PAGES = 50
_Answer = TypeVar("_Answer")


def tools_of(name: str, server: Server, *, workspace: str) -> list[ForeignTool]:
    """Ask a server for its tools."""
    try:
        described = _with(server, _listed, workspace=workspace, seconds=_START_SECONDS)
    except ToolFailed as error:
        raise Misuse(
            f"the MCP server {name} has no tools to offer: {error}", way_out="adjourn config"
        ) from error
    return [_foreign(name, tool) for tool in described]


def _foreign(server: str, tool: Described) -> ForeignTool:
    return ForeignTool(
        name=f"{server}__{tool.name}",
        description=tool.description or tool.name,
        schema=tool.input_schema,
        owned_name=tool.name,
        server=server,
    )


async def _listed(client: Client) -> list[Described]:
    page = await client.list_tools()
    tools, pages = list(page.tools), 1
    while page.next_cursor and pages < _MOST_PAGES:
        page = await client.list_tools(cursor=page.next_cursor)
        tools, pages = [*tools, *page.tools], pages + 1
    return tools


def call(server: Server, tool: str, arguments: Arguments, *, workspace: str) -> str:
    """Have a server carry out one call.

    The caller of this process limits how long that may take.
    """
    result = _with(
        server, lambda client: client.call_tool(tool, arguments), workspace=workspace, seconds=None
    )
    if result.is_error:
        raise ToolFailed(_words(result))
    return _words(result)


def _words(result: CallToolResult) -> str:
    texts = [
        part.text if isinstance(part, TextContent) else f"[{part.type}, not shown]"
        for part in result.content
    ]
    if not texts and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    return "\n".join(texts)


def _with(
    server: Server,
    use: Callable[[Client], Awaitable[_Answer]],
    *,
    workspace: str,
    seconds: float | None,
) -> _Answer:
    """Connect, use the connection, and leave; whatever breaks on the way becomes one sentence."""

    async def main() -> _Answer:
        async with asyncio.timeout(seconds), _client(server, workspace=workspace) as client:
            return await use(client)

    try:
        return asyncio.run(main())
    except ToolFailed:
        raise
    except Exception as error:
        raise ToolFailed(_first_cause(error)) from error


def _first_cause(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _first_cause(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return str(error) or type(error).__name__


def _client(server: Server, *, workspace: str) -> Client:
    if server.url is None:
        program = StdioServerParameters(
            command=_filled(server.command or ""),
            args=[_filled(word) for word in server.args],
            env={**os.environ, **{name: _filled(value) for name, value in server.env.items()}},
            cwd=workspace,
        )
        return Client(program)
    if not server.headers:
        return Client(_filled(server.url))
    # Comes with the extra that this tool needs
    import httpx2

    http = httpx2.AsyncClient(
        headers={name: _filled(value) for name, value in server.headers.items()}
    )
    return Client(streamable_http_client(_filled(server.url), http_client=http))


def _filled(text: str) -> str:
    """Put in the variables of the environment, so that no file has to hold secrets."""
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)

"""An MCP server for the tests: it adds, it notes, it breaks."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write something down."""
    with Path("notes.txt").open("a") as file:
        file.write(f"{text} {os.environ.get('SHOP_KEY')}\n")
    return "noted"


@server.tool()
def broken() -> str:
    """Break."""
    raise ValueError("out of order")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
    else:
        server.run()

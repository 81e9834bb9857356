"""adjourn mcp: serve MCP on stdin and stdout, for a parent agent."""

import os

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.mcp_server.hosts import principal_of
from adjourn.mcp_server.server import ToolServer
from adjourn.mcp_server.stdio import StdioServer

TYPE_CHECKING = False

if TYPE_CHECKING:  # a host waits for the first answer
    from adjourn.mcp_server.control import Control


@verb("mcp")
@click.option(
    "--as",
    "name",
    default="host",
    metavar="NAME",
    help="What to call the agent at the other end: its tasks and decisions are agent:NAME's.",
)
def command(session: Session, *, name: str) -> int:
    """Serve MCP on stdin and stdout: tools to start tasks, wait for them and decide.

    A host such as Claude Code or Codex starts it; `adjourn setup` tells the host how. Without the
    secret of a host, a connection decides only for what it started itself.
    """
    principal = principal_of(name, os.environ)

    def open_control() -> "Control":
        # The first answers need no store
        from adjourn.mcp_server.control import Control
        from adjourn.process.ancestry import enclosing_run

        inside = enclosing_run()
        return Control(session.root, name=principal, inside_run=inside, commands=session.commands)

    StdioServer(ToolServer(session.root, version="0.1.0", open_control=open_control)).serve()
    return 0

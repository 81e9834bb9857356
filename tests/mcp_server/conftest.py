"""What the tests of the MCP server have: a shell, and a host in it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from adjourn.hub import Hub
from adjourn.mcp_server.control import Control
from adjourn.mcp_server.http import HttpServer
from adjourn.mcp_server.server import ToolServer
from adjourn.views.block import Commands
from tests.e2e.shell import Shell
from tests.mcp_server.host import Host
from tests.stores import on_store


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = on_store(request, Shell(tmp_path))
    yield shell
    assert shell.end() == {}


@pytest.fixture
def host(shell: Shell) -> Iterator[Host]:
    """Return a host that has shaken hands."""
    with Host(shell) as host:
        host.initialize()
        yield host


@pytest.fixture
def url(
    request: pytest.FixtureRequest, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return where MCP is served, in this process, as the web application will serve it."""
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(shell.place)
    shell.agent("approved.sh")
    shell.adjourn("run", "--", "true")  # makes the store
    root = str(shell.store)
    anonymous: str | None = getattr(request, "param", None)  # who needs no token, if anybody

    def open_server(principal: str) -> ToolServer:
        def control() -> Control:
            commands = Commands("adjourn", None)
            return Control(root, name=principal, inside_run=None, commands=commands)

        return ToolServer(root, version="1", open_control=control)

    hub = Hub([root])
    hub.start()

    def principal_of(request: Any) -> str | None:
        token = request.headers.get("authorization", "")
        known = {"Bearer one": "agent:one", "Bearer two": "agent:two", "": anonymous}
        return known.get(token)

    mcp = HttpServer(hub, root=root, open_server=open_server, principal_of=principal_of)
    app = Starlette(routes=[mcp.route()])
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True
    thread.join(20)
    mcp.close()
    hub.close()

"""What the tests of the MCP server have: a shell, and a host in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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

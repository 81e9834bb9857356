"""Tools that others bring: MCP servers from a file, Python functions by entry point.

Each call is judged, and runs once.
"""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.desk import desk, finish, use
from tests.e2e.shell import until
from tests.model.script import ToolUse

SERVER = Path(__file__).parent / "mcp_server.py"


@pytest.mark.one_machine("it looks for a secret in the file of the database")
def test_the_tools_of_an_mcp_server_are_offered_gated_and_run_beside_the_agent(
    tmp_path: Path,
) -> None:
    servers = {
        "shop": {"command": sys.executable, "args": [str(SERVER)], "env": {"SHOP_KEY": "${MY_KEY}"}}
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    calls = (
        ToolUse(name="shop__add", arguments={"a": 2, "b": 3}, id="add"),
        ToolUse(name="shop__note", arguments={"text": "milk"}, id="note"),
        ToolUse(name="shop__broken", id="broken"),
    )
    with desk(tmp_path, use(*calls), finish()) as person:
        paused = person.agent_run("--mcp", "mcp.json", expect=10)
        assert [call["name"] for call in paused["pause_reason"]["pending_tool_calls"]] == [
            "shop__add",
            "shop__note",
            "shop__broken",
        ]
        assert person.lines("notes.txt") == []
        (tmp_path / "mcp.json").unlink()  # the task keeps what it was started with
        person.resumed(paused, "--approve-all", expect=0, env={"MY_KEY": "abc"})
        assert person.lines("notes.txt") == ["milk abc"]
    assert person.results()["add"] == "5"
    assert person.results()["note"] == "noted"
    assert "out of order" in person.results()["broken"]
    assert "MY_KEY" in (person.store / "adjourn.db").read_bytes().decode(errors="replace")
    assert b"abc\x00" not in (person.store / "adjourn.db").read_bytes()


def test_a_server_at_an_address_is_as_good_as_one_that_is_started(tmp_path: Path) -> None:
    with (
        listening() as port,
        desk(
            tmp_path, use(ToolUse(name="web__add", arguments={"a": 2, "b": 3}, id="add")), finish()
        ) as person,
    ):
        server = {
            "url": f"http://127.0.0.1:{port}/mcp",
            "headers": {"Authorization": "Bearer ${MY_KEY}"},
        }
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"web": server}}))
        person.environment["MY_KEY"] = "abc"
        person.resumed(person.agent_run("--mcp", "mcp.json", expect=10), "--approve-all", expect=0)
    assert person.results()["add"] == "5"


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """Have the server listen on a port for as long as the block lasts."""
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stdout=quiet, stderr=quiet
    ) as server:
        try:
            until(lambda: is_open(port), what="it listens", seconds=60)
            yield port
        finally:
            server.kill()


def is_open(port: int) -> bool:
    with contextlib.closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_that_does_not_start_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(
        json.dumps({"mcpServers": {"shop": {"command": "/no/such/server"}}})
    )
    with desk(tmp_path) as person:
        failed = person.json("run", "--mcp", "mcp.json", "say hello", expect=1)
        assert "the MCP server shop has no tools to offer" in failed["error"]["message"]
        assert person.model.requests == []


def test_python_functions_of_installed_packages_are_tools(tmp_path: Path) -> None:
    package = tmp_path / "site"
    (package / "shop-1.0.dist-info").mkdir(parents=True)
    (package / "shop-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n"
    )
    (package / "shop-1.0.dist-info" / "entry_points.txt").write_text(
        "[adjourn.tools]\nprice = shop:price\n"
    )
    (package / "shop.py").write_text(
        'def price(item: str, count: int = 1) -> dict[str, int]:\n    """Say what something costs."""\n'
        '    if item == "moon":\n        raise LookupError("not for sale")\n    return {item: 3 * count}\n'
    )
    calls = (
        ToolUse(name="price", arguments={"item": "milk", "count": 2}, id="good"),
        ToolUse(name="price", arguments={"item": "moon"}, id="broken"),
        ToolUse(name="price", arguments={"thing": "milk"}, id="bad"),
    )
    with desk(tmp_path, use(*calls), finish()) as person:
        person.environment["PYTHONPATH"] = str(package)
        person.resumed(person.agent_run(expect=10), "--approve-all", expect=0)
        (offered,) = [
            tool["function"]
            for tool in person.model.asked[0].body["tools"]
            if tool["function"]["name"] == "price"
        ]
    assert offered["description"] == "Say what something costs."
    assert offered["parameters"]["required"] == ["item"]
    assert person.results()["good"] == '{"milk":6}'
    assert person.results()["broken"].startswith("LookupError: not for sale")
    assert "thing" in person.results()["bad"]

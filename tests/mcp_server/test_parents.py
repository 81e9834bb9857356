"""Parents of every kind: the official client in both eras, and a script under adjourn itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.e2e.shell import ADJOURN, Shell

PARENT = """
import os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from tests.mcp_server.host import Host
class Here:
    place = Path.cwd()
    environment = dict(os.environ)
host = Host(Here, name="script")
host.initialize()
Path("starts").open("a").write("parent\\n")
task = host.call("run_command_task", command=["./approved.sh"])
asked = host.call("ask_human", question="Go on?")
tasks = host.wait(task["task_id"], asked["task_id"], until="all")
host.close()
if any(each["status"] == "Paused" for each in tasks):
    sys.exit(10)
Path("result").write_text(" ".join(each["status"] + ":" + str(each["final_message"]) for each in tasks))
"""


def test_a_script_that_starts_children_waits_while_they_wait_and_goes_on_with_their_results(
    shell: Shell,
) -> None:
    """Use case 2: A-R65, A-R66; its children are the same when it is run again."""
    shell.agent("approved.sh")
    script = shell.place / "parent.py"
    script.write_text(PARENT.format(tests=str(Path(__file__).parents[2])))
    parent = shell.json("run", "--", sys.executable, str(script), expect=10)
    assert (parent["state"], parent["asks"]) == ("waiting", [])
    asks = {ask["kind"]: ask for ask in shell.inbox()}
    assert sorted(parent["waiting_on"]) == sorted(ask["task_id"] for ask in asks.values())
    shell.adjourn("answer", asks["question"]["id"], "yes")
    assert shell.state(parent["task_id"]) == "waiting"
    shell.adjourn("resume", asks["approval"]["task_id"], "--approve-all")
    shell.adjourn("resume", parent["task_id"])
    result = (shell.place / "result").read_text()
    assert result == "Completed:done with approved Completed:yes"
    assert [line.split()[0] for line in shell.lines("starts")].count("parent") == 2
    assert shell.lines("effects") == ["done with approved"]
    assert len(shell.json("tasks")["tasks"]) == 3


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_official_client_supervises_a_task(shell: Shell, mode: Any, version: str) -> None:
    """A-R6, A-R63 to A-R68: the example of the RFC."""
    shell.agent("approved.sh")
    server = StdioServerParameters(
        command=str(ADJOURN),
        args=["mcp", "--as", "official"],
        cwd=shell.place,
        env=dict(shell.environment),
    )

    async def supervise() -> None:
        async with Client(stdio_client(server), mode=mode) as client:
            assert client.protocol_version == version
            listed = await client.list_tools()
            assert len(listed.tools) == 11

            async def call(name: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result.content
                found: dict[str, Any] = result.structured_content or {}
                return found

            task = await call("run_command_task", command=["./approved.sh"])
            paused = (await call("wait_for_tasks", task_ids=task["task_id"]))["tasks"][0]
            assert paused["status"] == "Paused"
            details = await call("get_task_details", task_id=task["task_id"])
            (pending,) = details["pause_reason"]["pending_tool_calls"]
            decision = {"tool_call_id": pending["id"], "approved": True}
            await call("resume_task", task_id=task["task_id"], tool_decisions=[decision])
            ended = (await call("wait_for_tasks", task_ids=[task["task_id"]]))["tasks"][0]
            assert (ended["status"], ended["final_message"]) == ("Completed", "done with approved")
            inbox = await client.read_resource("adjourn://inbox")
            text: str = getattr(inbox.contents[0], "text", "")
            assert json.loads(text)["asks"] == []

    anyio.run(supervise)


def test_the_first_answers_need_neither_a_store_nor_what_runs_tasks(tmp_path: Path) -> None:
    """No other verb pays for the server, and the server pays for nothing before it is asked."""
    code = (
        "import sys; from adjourn.mcp_server.stdio import StdioServer;"
        "from adjourn.mcp_server.server import ToolServer;"
        "from adjourn.mcp_server.protocol import Connection;"
        "server = ToolServer('/nowhere', version='1', open_control=None);"
        "Connection(server); server.tools();"
        "print([name for name in sys.modules if name.startswith(('adjourn.stores', 'apsw',"
        " 'adjourn.controller', 'asyncio', 'subprocess', 'adjourn.runners', 'starlette'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path, text=True
    )
    assert done.stdout.strip() == "[]"

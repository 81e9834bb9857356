"""MCP over HTTP under uvicorn: the same tools, for both eras, and nothing for strangers."""

import asyncio
import gc
import threading
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client

from adjourn.mcp_server.launch import Launcher
from tests.e2e.shell import Shell


def post(url: str, message: Any, *, who: str = "one", **headers: str) -> httpx2.Response:
    """Send one message."""
    given = {"Authorization": f"Bearer {who}", **headers}
    return httpx2.post(url, json=message, headers=given, timeout=30)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a request that calls a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_a_parent_supervises_over_http(url: str, shell: Shell) -> None:
    """Start, wait, approve, wait; what waits is a stream of events, all else is JSON."""
    started = post(url, call("run_command_task", command=["./approved.sh"]))
    task = started.json()["result"]["structuredContent"]
    waited = post(url, call("wait_for_tasks", task_ids=[task["task_id"]]))
    assert "Paused" in waited.text
    ask = post(url, call("get_task_details", task_id=task["task_id"])).json()["result"][
        "structuredContent"
    ]["asks"][0]
    decision = {"tool_call_id": ask["tool_call_id"], "approved": True}
    arguments = {
        "task_id": task["task_id"],
        "tool_decisions": [decision | {"digest": ask["digest"]}],
    }
    refused = post(url, call("resume_task", **arguments), who="two").json()["result"]
    assert refused["isError"]
    post(url, call("resume_task", **arguments))
    waited = post(url, call("wait_for_tasks", task_ids=[task["task_id"]]))
    assert waited.headers["content-type"].startswith("text/event-stream")
    assert '"status":"Completed"' in waited.text
    assert shell.lines("effects") == ["done with approved"]


def test_a_supervisor_outlives_the_server_that_started_it(shell: Shell) -> None:
    """Nobody lets go of a process that runs: Python would complain, and it would stay a zombie."""
    shell.adjourn("run", "--", "true")  # makes the store
    launch = Launcher(str(shell.store)).start("default", slot="-")
    del launch
    gc.collect()  # a complaint would fail this test


def test_what_is_no_request_of_a_known_client_is_refused(url: str) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert post(url, ping).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert post(url, ping, who="none").status_code == 401
    assert post(url, ping, Host="evil.example").status_code == 403
    assert post(url, ping, Origin="http://evil.example").status_code == 403
    assert httpx2.get(url).status_code == 405
    assert httpx2.delete(url).status_code == 405
    assert post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    assert post(url, ["x"]).status_code == 400
    large = httpx2.post(url, content=b"x" * 5_000_000, headers={"Authorization": "Bearer one"})
    assert large.status_code == 413
    assert "Mcp-Session-Id" not in post(url, ping).headers


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_speaks_to_it(url: str, mode: Any) -> None:
    from mcp.client.streamable_http import streamable_http_client

    async def talk() -> None:
        headers = {"Authorization": "Bearer one"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            assert len((await client.list_tools()).tools) == 11
            asked = await client.call_tool("ask_human", {"question": "Ship?", "key": mode})
            found: Any = asked.structured_content
            assert found["status"] == "Paused"

    anyio.run(talk)
    gc.collect()  # the client leaves sockets to the collector, which would complain in another test


def test_many_waits_share_one_thread(url: str, shell: Shell) -> None:
    """A person's answer ends them all."""
    asked = post(url, call("ask_human", question="Ship?")).json()["result"]["structuredContent"]
    waiting = call("wait_for_tasks", task_ids=[asked["task_id"]])
    post(url, waiting)  # the pause, once

    async def wait_together() -> list[str]:
        headers = {"Authorization": "Bearer one"}
        limits = httpx2.Limits(max_connections=40)
        async with httpx2.AsyncClient(headers=headers, timeout=60, limits=limits) as client:
            waits = [asyncio.create_task(client.post(url, json=waiting)) for _ in range(40)]
            await asyncio.sleep(1)
            assert not any(wait.done() for wait in waits)
            threads = [
                each for each in threading.enumerate() if each.name.startswith("adjourn mcp")
            ]
            assert len(threads) == 1
            await asyncio.to_thread(shell.adjourn, "answer", asked["asks"][0]["ask_id"], "yes")
            return [(await wait).text for wait in waits]

    texts = asyncio.run(wait_together())
    assert all('"final_message":"yes"' in text for text in texts)

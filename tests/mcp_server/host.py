"""A host of the MCP server: starts the real `adjourn mcp` and speaks JSON with it, line by line."""

import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from adjourn.core.trail.events import Event
from tests.e2e.shell import ADJOURN, Shell

Json = dict[str, Any]
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "1"},
}


class Host:
    """One connection."""

    def __init__(
        self,
        shell: Shell,
        *,
        name: str = "test",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        client: str = "tests",
    ) -> None:
        self.process: Any = subprocess.Popen(
            [str(ADJOURN), "mcp", "--as", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or shell.place,
            env={**shell.environment, **(env or {})},
        )
        self._client = client
        self._id = 0
        self._buffer = b""
        self.notices: list[Json] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        """Leave as a host does that closes stdin."""
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        code: int = self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def initialize(self, version: str = "2025-06-18") -> Json:
        """Shake hands as clients before 2026 do."""
        info = {"name": self._client, "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        result = self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def send(self, message: Json | bytes) -> None:
        """Send a message as it is."""
        line = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: Json | None = None) -> int:
        """Send a request and return its id."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}})
        return self._id

    def reply(self, name: int | None, *, seconds: float = 60) -> Json:
        """Return the reply to a request; notices that come before it are kept."""
        deadline = time.monotonic() + seconds
        while True:
            message = self.read(deadline - time.monotonic())
            if "method" in message:
                self.notices.append(message)
            elif message["id"] == name:
                return message

    def read(self, seconds: float = 60) -> Json:
        """Return the next message."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            rest = deadline - time.monotonic()
            assert rest > 0, "no message came"
            if select.select([self.process.stdout], [], [], rest)[0]:
                piece = os.read(self.process.stdout.fileno(), 1 << 20)
                assert piece, self.process.stderr.read().decode()
                self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=Json)

    def ask(self, method: str, params: Json | None = None) -> Json:
        """Return the result of a request."""
        reply = self.reply(self.begin(method, params))
        assert "result" in reply, reply
        result: Json = reply["result"]
        return result

    def begin_call(self, tool: str, meta: Json | None = None, **arguments: Any) -> int:
        """Begin to call a tool."""
        params: Json = {"name": tool, "arguments": arguments}
        return self.begin("tools/call", params | ({"_meta": meta} if meta else {}))

    def call(self, tool: str, meta: Json | None = None, **arguments: Any) -> Json:
        """Call a tool and return what it returns."""
        reply = self.reply(self.begin_call(tool, meta, **arguments))
        result = reply["result"]
        assert not result.get("isError"), result
        document: Json = result["structuredContent"]
        assert msgspec.json.decode(result["content"][0]["text"]) == document
        return document

    def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail, and return why: a sentence, and what helps."""
        result = self.reply(self.begin_call(tool, **arguments))["result"]
        assert result["isError"], result
        assert "structuredContent" not in result
        text: str = result["content"][0]["text"]
        assert "Traceback" not in text
        return text

    def wait(self, *task_ids: str, **arguments: Any) -> list[Json]:
        """Wait for tasks."""
        tasks: list[Json] = self.call("wait_for_tasks", task_ids=list(task_ids), **arguments)[
            "tasks"
        ]
        return tasks

    def paused(self, shell: Shell, *words: str) -> Json:
        """Start a command that wants approval, and return it once it is paused."""
        argv = list(words) or [shell.agent("approved.sh")]
        (task,) = self.wait(self.call("run_command_task", command=argv)["task_id"])
        assert task["status"] == "Paused", task
        return task

    def approve(self, task: Json, **more: Any) -> Json:
        """Approve all that a task asks."""
        decisions = [
            {"tool_call_id": ask["tool_call_id"], "approved": True} for ask in task["asks"]
        ]
        return self.call("resume_task", task_id=task["task_id"], tool_decisions=decisions, **more)


def events(shell: Shell, task_id: str) -> list[Event]:
    """Return what the trail tells of a task."""
    store = shell.open_store()
    with closing(store), store.read() as view:
        return view.events(task_id)

"""The MCP server: how soon it answers, what it weighs, and how soon a waiting parent hears.

Beside it a server of the official SDK that has one tool.
"""

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _figures import Figure, ms, report, words
from _measure import environment, percentile, python

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

_SDK = """
from mcp.server import MCPServer
server = MCPServer("x")
@server.tool()
def look() -> str:
    return "x"
server.run()
"""
_ADD, _LARGEST_MB, _PER_WAIT_KB = 0.060, 25.0, 60.0
_MEDIAN_MS, _P99_MS, _IDLE_MS = 10.0, 50.0, 10.0
_PERSON = Principal(name=f"uid:{os.getuid()}")


class Server:
    """One server on two pipes."""

    def __init__(self, argv: Sequence[str], place: Path) -> None:
        self._process: Any = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=place,
            env=environment(),
        )
        self._buffer = b""

    def send(self, number: int, method: str, params: dict[str, Any]) -> None:
        """Send a request."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(msgspec.json.encode(message) + b"\n")
        self._process.stdin.flush()

    def read(self) -> Any:
        """Return the next message."""
        while b"\n" not in self._buffer:
            select.select([self._process.stdout], [], [], 60)
            piece = os.read(self._process.stdout.fileno(), 1 << 20)
            assert piece, "the server left"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line)

    def initialize(self) -> Any:
        """Shake hands."""
        info = {"name": "bench", "version": "1"}
        version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.send(0, "initialize", version)
        return self.read()

    def call(self, number: int, tool: str, **arguments: Any) -> Any:
        """Call a tool and return what it returns."""
        self.send(number, "tools/call", {"name": tool, "arguments": arguments})
        return self.read()["result"]["structuredContent"]

    @property
    def kilobytes(self) -> int:
        """What it has in memory."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(text.partition("VmRSS:")[2].split()[0])

    @property
    def cpu(self) -> float:
        """The seconds of CPU that it took so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Leave."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--waits", type=int, default=200)
    parser.add_argument("--decisions", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / STORE).mkdir(mode=0o700)
        ours = [python(), "-m", "adjourn", "mcp", "--store", str(place / STORE)]
        sdk = [sys.executable, "-c", _SDK]
        bare = min(_timed(lambda: subprocess.run([python(), "-c", "pass"], check=True), given))
        start, memory = _starts(ours, place, given.starts)
        of_sdk, _ = _starts(sdk, place, 5)
        per_wait, idle, times = _waits(ours, place, given)
    middle, late = median(times), percentile(times, 99)
    mega, waits = memory / 1024, f"{given.waits} waits"
    limit = f"2 x {ms(bare)} + {ms(_ADD)}"
    print(f"a server of the SDK: {ms(of_sdk)} to its first answer")
    return report(
        "MCP",
        [
            Figure("start to first answer", ms(start), limit, start / (2 * bare + _ADD), 1.0),
            Figure("memory after it", f"{mega:.1f} MB", "", mega, _LARGEST_MB, " MB"),
            Figure(f"a wait, of {waits}", f"{per_wait:.1f} KB", "", per_wait, _PER_WAIT_KB, " KB"),
            Figure(f"{waits}, 5 s idle", ms(idle), "", idle * 1000, _IDLE_MS, " ms"),
            Figure("decision to parent, median", ms(middle), "", middle * 1000, _MEDIAN_MS, " ms"),
            Figure("decision to parent, p99", ms(late), "", late * 1000, _P99_MS, " ms"),
        ],
    )


def _timed(act: Callable[[], object], given: Any) -> list[float]:
    times: list[float] = []
    for _ in range(given.starts):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return times


def _starts(argv: Sequence[str], place: Path, rounds: int) -> tuple[float, int]:
    """Return the seconds until the first answer, at best, and the memory after it."""
    times: list[float] = []
    weights: list[int] = []
    for _ in range(rounds):
        began = time.perf_counter()
        server = Server(argv, place)
        assert server.initialize()["result"]["protocolVersion"]
        times.append(time.perf_counter() - began)
        weights.append(server.kilobytes)
        server.close()
    return min(times), max(weights)


def _waits(argv: Sequence[str], place: Path, given: Any) -> tuple[float, float, list[float]]:
    """Return KB per wait, seconds of CPU while idle, and seconds from answers to the parent."""
    server = Server(argv, place)
    server.initialize()
    asked = [
        server.call(number, "ask_human", question=f"{number}?", key=str(number))
        for number in range(1, given.decisions + 1)
    ]
    for number, task in enumerate(asked, start=1_000):  # each pause is told once
        server.call(number, "wait_for_tasks", task_ids=[task["task_id"]])
    before = server.kilobytes
    held = asked[0]["task_id"]
    for number in range(given.waits):
        arguments = {"task_ids": [held], "timeout": 50}
        server.send(
            5_000 + number, "tools/call", {"name": "wait_for_tasks", "arguments": arguments}
        )
    time.sleep(2)
    per_wait = (server.kilobytes - before) / given.waits
    spent = server.cpu
    time.sleep(5)
    idle = server.cpu - spent

    controller = open_controller(str(place / STORE))
    times: list[float] = []
    for number, task in enumerate(asked[1:], start=10_000):
        wanted = {"name": "wait_for_tasks", "arguments": {"task_ids": [task["task_id"]]}}
        server.send(number, "tools/call", wanted)
        time.sleep(0.02)
        reply = Reply(ask_id=task["asks"][0]["ask_id"], verb=Verb.ANSWER, text="yes")
        controller.decisions.decide([reply], by=_PERSON)
        began = time.perf_counter()
        assert server.read()["id"] == number
        times.append(time.perf_counter() - began)
    controller.store.close()
    server.close()
    return per_wait, idle, times


if __name__ == "__main__":
    sys.exit(main())

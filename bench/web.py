"""The web server: what a reply over HTTP costs, and what streams and the server weigh.

The store has 10,000 open asks. The reply in-process is the same decide() without HTTP.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import msgspec
from _figures import Figure, ms, report, words
from _measure import environment, percentile, python

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, Reply, Verb, question_of
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

_PERSON = Principal(name=f"uid:{os.getuid()}")
_RATIO, _STREAM_KB, _SERVER_MB, _FIRST_BYTE_MS, _PAGE_KB = 3.0, 60.0, 60.0, 30.0, 25.0
_PREFIX = "/api/v1"


class Server:
    """One `adjourn serve`, and a token for it."""

    def __init__(self, place: Path) -> None:
        self._log = place / "serve.log"
        store = str(place / STORE)
        self._store, self._place = store, place
        self._program = [python(), "-m", "adjourn"]
        env = self._env = environment() | {"XDG_CONFIG_HOME": str(place / "config")}
        add = [python(), "-m", "adjourn", "tokens", "add", "bench", "--store", store]
        scopes = ["--scope", "answer", "--scope", "approve", "--scope", "request"]
        self.token = subprocess.run(
            [*add, *scopes], capture_output=True, text=True, check=True, env=env, cwd=place
        ).stdout.strip()
        serve = [python(), "-m", "adjourn", "serve", "--store", store, "--listen", "127.0.0.1:0"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(serve, stderr=log, stdout=log, env=env, cwd=place)
        while not (found := re.search(r"on 127.0.0.1:(\d+)", self._log.read_text())):
            assert self.process.poll() is None, self._log.read_text()
            time.sleep(0.02)
        self.port = int(found[1])
        self.http = HTTPConnection("127.0.0.1", self.port)
        self.http.connect()
        # It sends head and body apart: the body would wait for the server's delayed ACK
        self.http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
        }

    def send(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Send a request on the kept connection."""
        content = msgspec.json.encode(body) if body is not None else None
        self.http.request(method, path, content, self.headers)
        answer = self.http.getresponse()
        return answer.status, answer.read()

    def log_in(self) -> None:
        """Log in as a browser does, from now on."""
        done = subprocess.run(
            [*self._program, "users", "add", "bench", "--output", "json", "--store", self._store],
            capture_output=True,
            check=True,
            env=self._env,
            cwd=self._place,
        )
        own = f"http://localhost:{self.port}"
        headers = {"Origin": own, "Content-Type": "application/x-www-form-urlencoded"}
        content = urlencode({"code": msgspec.json.decode(done.stdout)["link"]})
        self.http.request("POST", "/login", content, headers | {"Host": own[7:]})
        answer = self.http.getresponse()
        answer.read()
        self.headers = {"Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0]}
        assert self.headers["Cookie"], answer.status

    def first_byte(self, path: str) -> tuple[float, int]:
        """Return the seconds to the first byte of a page, and its size."""
        began = time.perf_counter()
        self.http.request("GET", path, None, self.headers)
        answer = self.http.getresponse()
        took = time.perf_counter() - began
        assert answer.status == 200, answer.status
        return took, len(answer.read())

    @property
    def kilobytes(self) -> int:
        """What it has in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0])

    @property
    def cpu(self) -> float:
        """The seconds of CPU that it used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stop it."""
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0, self._log.read_text()[-2000:]


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--asks", type=int, default=10_000)
    parser.add_argument("--replies", type=int, default=200)
    parser.add_argument("--streams", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / STORE).mkdir(mode=0o700)
        controller = open_controller(str(place / STORE))
        asks = _fill(controller, given.asks, str(place))
        server = Server(place)
        try:
            inside, over = _replies(controller, server, asks, given.replies)
            first, size = _pages(server)
            weight = server.kilobytes / 1024
            per_stream, idle = asyncio.run(_streams(server, given.streams))
            server.log_in()
            pages = [server.first_byte("/") for _ in range(20)]
        finally:
            server.close()
            controller.store.close()
    middle, floor = median(over), median(inside)
    streams = f"{given.streams} streams"
    page, kilo = median(took for took, _ in pages), pages[0][1] / 1024
    print(f"reply over HTTP, p90: {ms(percentile(over, 90))}; first page of the API: {ms(first)}")
    return report(
        f"web, {given.asks:,} open asks",
        [
            Figure("reply over HTTP, median", ms(middle), ms(floor), middle / floor, _RATIO),
            Figure(
                "50 asks, all of the answer", ms(first), "", first * 1000, _FIRST_BYTE_MS, " ms"
            ),
            Figure("its size", f"{size / 1024:.1f} KB", "", size / 1024, 100.0, " KB"),
            Figure("first page, first byte", ms(page), "", page * 1000, _FIRST_BYTE_MS, " ms"),
            Figure("its size", f"{kilo:.1f} KB", "", kilo, _PAGE_KB, " KB"),
            Figure("the server", f"{weight:.1f} MB", "", weight, _SERVER_MB, " MB"),
            Figure(
                f"a stream, of {streams}", f"{per_stream:.1f} KB", "", per_stream, _STREAM_KB, " KB"
            ),
            Figure(f"{streams}, 5 s idle", ms(idle), "", idle * 1000, 50.0, " ms"),
        ],
    )


def _fill(controller: Controller, count: int, workspace: str) -> list[str]:
    """Ask so many questions, and return the asks."""
    question = question_of("Ship?", key=None, choices=("yes", "no"), expires_after=None)
    for _ in range(count):
        controller.tasks.ask_people(question, workspace=workspace, by=_PERSON)
    with controller.store.read() as view:
        return [name for name, _ in view.open_ask_ids()]


def _replies(
    controller: Controller, server: Server, asks: list[str], count: int
) -> tuple[list[float], list[float]]:
    """Return the seconds of replies in this process and over HTTP, taken in turns."""
    inside: list[float] = []
    over: list[float] = []
    server.send("GET", f"{_PREFIX}/health")
    for mine, theirs in zip(asks[:count], asks[count : 2 * count], strict=True):
        began = time.perf_counter()
        reply = Reply(ask_id=mine, verb=Verb.ANSWER, text="yes")
        settled = controller.decisions.decide([reply], by=_PERSON)
        controller.decisions.receipts(settled)
        inside.append(time.perf_counter() - began)
        began = time.perf_counter()
        body = {"verb": "answer", "text": "yes"}
        status, answer = server.send("POST", f"{_PREFIX}/asks/{theirs}/reply", body)
        over.append(time.perf_counter() - began)
        assert status == 200, answer
    return inside, over


def _pages(server: Server) -> tuple[float, int]:
    """Return the seconds for the first page of asks, and its size."""
    times: list[float] = []
    size = 0
    for _ in range(20):
        began = time.perf_counter()
        status, answer = server.send("GET", f"{_PREFIX}/asks?limit=50")
        times.append(time.perf_counter() - began)
        assert status == 200
        size = len(answer)
    return median(times), size


async def _streams(server: Server, count: int) -> tuple[float, float]:
    """Return KB per open stream, and the seconds of CPU while nothing happens."""
    before = server.kilobytes
    head = (
        f"GET {_PREFIX}/events HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(count)]
    for reader, writer in opened:
        writer.write(head)
        await reader.readuntil(b"retry: 2000")
    await asyncio.sleep(1)
    per_stream = (server.kilobytes - before) / count
    spent = server.cpu
    await asyncio.sleep(5)
    idle = server.cpu - spent
    for _, writer in opened:
        writer.close()
    return per_stream, idle


if __name__ == "__main__":
    sys.exit(main())

"""A model that plays a script: a real HTTP server on loopback that records what it was asked.

In a test: `with playing(turns) as model: … model.url …`. By itself: `python -m tests.model SCRIPT
[--record FILE] [--port N]`.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from tests.model.anthropic_messages import Messages
from tests.model.api import Api, Body
from tests.model.openai_chat import Chat
from tests.model.openai_responses import Responses
from tests.model.script import Fault, Script, Turn, named

APIS: tuple[Api, ...] = (Chat(), Messages(), Responses())


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it arrived, and which turn answered it."""

    api: str | None
    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    turn: int | None = None
    fault: bool = False


class Model:
    """Plays a script to whoever asks, and remembers what it was asked."""

    def __init__(self, script: Script, *, record: Path | None = None, port: int = 0) -> None:
        self.script = script
        self._record = record
        self._requests: list[Request] = []
        self._played: dict[int, int] = {}  # how many faults of each turn were played
        self._lock = threading.Lock()
        # Is called with each request, before it is answered
        self.prepare: Callable[[Request], None] | None = None
        self._http = _Http(("127.0.0.1", port), self)

    @property
    def url(self) -> str:
        """Where the server listens, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def openai(self) -> str:
        """What OpenAI's clients call the base URL."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def asked(self) -> list[Request]:
        """The requests that got an answer of the script."""
        return [
            request for request in self.requests if request.turn is not None and not request.fault
        ]

    def serve(self) -> None:
        """Serve until told to stop."""
        self._http.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()

    def next_fault(self, number: int) -> Fault | None:
        """Take the next fault of a turn, while it has some left."""
        with self._lock:
            played = self._played.get(number, 0)
            self._played[number] = played + 1
            faults = self.script.turns[number].faults
            return faults[played] if played < len(faults) else None

    def note(self, request: Request) -> None:
        """Remember a request, before it is answered."""
        if self.prepare:
            self.prepare(request)
        with self._lock:
            self._requests.append(request)
            if self._record:
                with self._record.open("ab") as file:
                    file.write(msgspec.json.encode(request) + b"\n")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], model: Model) -> None:
        super().__init__(address, _Handler)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away: tests kill them."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _model(self) -> Model:
        if not isinstance(self.server, _Http):
            raise TypeError(self.server)
        return self.server.model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name that the standard library gave it
        """Keep quiet: the recorder has it all."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        api = next((api for api in APIS if self.path.partition("?")[0].endswith(api.path)), None)
        try:
            body = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            body = raw.decode(errors="replace")
        if api is None or not isinstance(body, dict):
            self._note(None, body)
            self._send(404, {"error": {"message": f"nothing is scripted for {self.path}"}})
            return
        self._play(api, body)

    def do_GET(self) -> None:
        self._note(None, None)
        self._send(404, {"error": {"message": f"nothing is scripted for {self.path}"}})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _play(self, api: Api, body: Body) -> None:
        model, number = self._model, api.answers_so_far(body)
        if number >= len(model.script.turns):
            self._note(api, body)
            self._send(400, api.error(400, f"the script has no turn {number + 1}"))
            return
        fault = model.next_fault(number)
        self._note(api, body, turn=number, fault=fault is not None)
        turn = named(model.script.turns[number], number)
        time.sleep(fault.delay if fault else turn.delay)
        if fault:
            self._fail(api, fault, turn, body)
        else:
            self._answer(api, turn, body, drop_after=None)

    def _note(
        self, api: Api | None, body: Any, *, turn: int | None = None, fault: bool = False
    ) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        name = api.name if api else None
        method = self.command
        request = Request(
            api=name,
            method=method,
            path=self.path,
            headers=headers,
            body=body,
            turn=turn,
            fault=fault,
        )
        self._model.note(request)

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, api: Api, turn: Turn, body: Body, *, drop_after: int | None) -> None:
        if body.get("stream"):
            self._stream(api, turn, body, drop_after=drop_after)
        else:
            self._send(200, api.whole(turn, body), drop_after=drop_after)

    def _stream(self, api: Api, turn: Turn, body: Body, *, drop_after: int | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for place, (name, data) in enumerate(api.events(turn, body)):
            if place == drop_after:
                self._break_off()
                return
            text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
            self._chunk((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
        self._chunk("")

    def _chunk(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
        self.wfile.flush()

    def _fail(self, api: Api, fault: Fault, turn: Turn, body: Body) -> None:
        if fault.drop_after is not None:
            self._answer(api, turn, body, drop_after=fault.drop_after)
        elif fault.garbage is not None:
            self._send_raw(fault.status, fault.garbage.encode(), {"Content-Type": "text/plain"})
        else:
            message = f"scripted fault {fault.status}"
            headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
            self._send(
                fault.status,
                api.too_long() if fault.too_long else api.error(fault.status, message),
                headers=headers,
            )

    def _send(
        self,
        status: int,
        document: Body,
        *,
        headers: dict[str, str] | None = None,
        drop_after: int | None = None,
    ) -> None:
        raw = msgspec.json.encode(document)
        self._send_raw(
            status,
            raw,
            {"Content-Type": "application/json", **(headers or {})},
            drop_after=drop_after,
        )

    def _send_raw(
        self, status: int, raw: bytes, headers: dict[str, str], *, drop_after: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw[:drop_after])
        if drop_after is not None:
            self._break_off()

    def _break_off(self) -> None:
        """Cut the connection in the middle of an answer."""
        self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def playing(turns: Sequence[Turn] | Script, *, record: Path | None = None) -> Iterator[Model]:
    """Serve a script for as long as the block lasts."""
    model = Model(turns if isinstance(turns, Script) else Script(turns=tuple(turns)), record=record)
    thread = threading.Thread(target=model.serve, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.stop()
        thread.join()

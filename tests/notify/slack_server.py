"""A stand-in of Slack: its Web API by HTTP, and Socket Mode by a WebSocket."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

CHANNEL = "C0123456789"
BOT_TOKEN, APP_TOKEN = "xoxb-bot", "xapp-app"
Json = dict[str, Any]


class SlackServer:
    """One channel. `press` and `submit` are what people do."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.messages: dict[str, Json] = {}
        self.told: list[Json] = []
        self.views: list[Json] = []
        self.acknowledged: list[str] = []
        self._connections: list[ServerConnection] = []
        self._number = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                is_json = "json" in self.headers.get("content-type", "")
                body = json.loads(raw or b"{}") if is_json else parse_qs(raw.decode())
                content = json.dumps(
                    outer.answer(self.path[1:], self.headers["authorization"], body)
                ).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that it overrides
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.api = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.sockets = serve(self._connected, "127.0.0.1", 0)
        self._threads = [
            Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            Thread(target=self.sockets.serve_forever, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.sockets.shutdown()
        for thread in self._threads:
            thread.join(30)

    def _connected(self, connection: ServerConnection) -> None:
        connection.send(json.dumps({"type": "hello", "num_connections": 1}))
        with self.changed:
            self._connections.append(connection)
            self.changed.notify_all()
        with suppress(ConnectionClosed):
            for text in connection:
                with self.changed:
                    self.acknowledged.append(json.loads(text)["envelope_id"])
                    self.changed.notify_all()
        with self.changed:
            self._connections.remove(connection)

    def answer(self, method: str, token: str, body: Any) -> Json:
        if method == "apps.connections.open":
            assert token == f"Bearer {APP_TOKEN}"
            port = self.sockets.socket.getsockname()[1]
            return {"ok": True, "url": f"ws://127.0.0.1:{port}/link/?ticket=1"}
        assert token == f"Bearer {BOT_TOKEN}"
        with self.changed:
            try:
                if method == "chat.postMessage":
                    self._number += 1
                    ts = f"1700000000.{self._number:06}"
                    self.messages[ts] = {**body, "ts": ts}
                    return {"ok": True, "ts": ts, "channel": body["channel"]}
                if method == "chat.update":
                    self.messages[body["ts"]].update(body)
                elif method == "chat.postEphemeral":
                    self.told.append(body)
                elif method == "views.open":
                    self.views.append(body)
                else:
                    return {"ok": False, "error": "unknown_method"}
                return {"ok": True}
            finally:
                self.changed.notify_all()

    # --- what people do ---------------------------------------------------------------------------

    def press(self, message: Json, label: str, *, user: str) -> str:
        payload = {
            "type": "block_actions",
            "user": {"id": user},
            "channel": {"id": message["channel"]},
            "message": {"ts": message["ts"]},
            "trigger_id": f"trigger-{user}",
            "actions": [{"value": buttons(message)[label]}],
        }
        return self._send(payload)

    def submit(self, view: Json, words: str, *, user: str) -> str:
        payload = {
            "type": "view_submission",
            "user": {"id": user},
            "view": {
                "callback_id": view["view"]["callback_id"],
                "private_metadata": view["view"]["private_metadata"],
                "state": {"values": {"words": {"words": {"value": words}}}},
            },
        }
        return self._send(payload)

    def _send(self, payload: Json) -> str:
        with self.changed:
            assert self.changed.wait_for(lambda: self._connections, timeout=60)
            self._number += 1
            name = f"envelope-{self._number}"
            envelope = {"envelope_id": name, "type": "interactive", "payload": payload}
            self._connections[-1].send(json.dumps({**envelope, "accepts_response_payload": True}))
        return name

    def until(self, ready: Callable[[], Any], *, what: str, timeout: float = 60) -> Any:
        with self.changed:
            found = self.changed.wait_for(ready, timeout=timeout)
        assert found, f"{what}: {self.messages} {self.told}"
        return found

    def of_ask(self, ask: str) -> list[Json]:
        return [each for each in self.messages.values() if ask in text_of(each)]


def text_of(message: Json) -> str:
    text: str = message["blocks"][0]["elements"][0]["elements"][0]["text"]
    return text


def buttons(message: Json) -> dict[str, str]:
    found: dict[str, str] = {}
    for block in message["blocks"]:
        if block["type"] == "actions":
            found |= {each["text"]["text"]: each["value"] for each in block["elements"]}
    return found


@contextmanager
def slack() -> Iterator[SlackServer]:
    server = SlackServer()
    try:
        yield server
    finally:
        server.close()

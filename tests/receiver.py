"""A receiver of what notifiers send: a real HTTP server that remembers what it was told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class Receiver:
    """A real HTTP server that remembers what it was told, and answers as a test wants."""

    def __init__(self) -> None:
        self.answer: Answer = answering(204)
        self.taken: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.taken.append(
                    ({name.lower(): value for name, value in self.headers.items()}, body)
                )
                receiver.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that it overrides
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?a=b"
        Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()


def answering(status: int, **headers: str) -> Answer:
    """Answer with a status."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    return answer


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Have a server on this machine for a while."""
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()

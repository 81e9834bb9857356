"""A wire between adjourn and PostgreSQL that can be cut at a word, or made slow."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


class Wire:
    """Carries bytes both ways.

    `cut_at` ends every connection as soon as the client has said that word.
    """

    def __init__(self, target: str, listener: socket.socket) -> None:
        self.cut_at: bytes | None = None
        self.cut_after: int | None = None  # how many times the client may speak before it is cut
        # Whether the server still hears what the connection was cut at
        self.carries_the_word = True
        self.delay = 0.0
        self.cuts = 0
        # What happens while the client waits for the word that is cut
        self.meanwhile: Callable[[], None] = lambda: None
        # While something happens meanwhile, nobody gets a new connection
        self._is_over = threading.Lock()
        self._target = target
        self._listener = listener

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._is_over:
                    self._join(client)

    def _join(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            _end(client, server)  # the server is down
            return
        threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
        threading.Thread(target=_carry, args=(server, client), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while words := client.recv(65536):
                time.sleep(self.delay)
                if self._is_the_end(words):
                    self._cut(client, server, words)
                    return
                server.sendall(words)
        _end(client, server)

    def _is_the_end(self, words: bytes) -> bool:
        if self.cut_after is not None:
            self.cut_after -= 1
        return bool(self.cut_at and self.cut_at in words) or self.cut_after == -1

    def _cut(self, client: socket.socket, server: socket.socket, words: bytes) -> None:
        self.cut_at = self.cut_after = None
        self.cuts += 1
        with self._is_over:
            self.meanwhile()
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)  # no reply gets through from here on
            if self.carries_the_word:
                server.sendall(words)
                time.sleep(0.05)
        _end(client, server)


def _carry(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while words := source.recv(65536):
            target.sendall(words)
    _end(source, target)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextlib.contextmanager
def wire(url: str, place: Path) -> Iterator[tuple[Wire, str]]:
    """Lay a wire to a server that listens on a unix socket.

    Return it, and the address at its other end.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / ".s.PGSQL.5432"))
    with laid(url, listener) as carrier:
        yield carrier, f"postgresql://postgres@{urlsplit(url).path}?host={place}"


@contextlib.contextmanager
def wire_at(url: str, host: str) -> Iterator[tuple[Wire, str]]:
    """Lay a wire that ends at an address of the network."""
    listener = socket.create_server((host, 0))
    with laid(url, listener) as carrier:
        yield (
            carrier,
            f"postgresql://postgres@{host}:{listener.getsockname()[1]}{urlsplit(url).path}",
        )


@contextlib.contextmanager
def laid(url: str, listener: socket.socket) -> Iterator[Wire]:
    """Serve a wire while somebody needs it."""
    folder = parse_qs(urlsplit(url).query)["host"][0]
    listener.listen(64)
    carrier = Wire(f"{folder}/.s.PGSQL.5432", listener)
    threading.Thread(target=carrier.serve, daemon=True).start()
    try:
        yield carrier
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # whoever waits for the next connection wakes up
        listener.close()

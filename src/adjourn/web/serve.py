"""Runs the server: where it listens, and how it stops."""

import asyncio
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from adjourn.core.errors import Misuse
from adjourn.web.site import Address, Site

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_UNIX = "unix:"
_PATIENCE = 10  # seconds that requests have to end when the server is told to stop


class Background(Protocol):
    """What runs beside the server, in threads of its own."""

    def start(self) -> None:
        """Begin."""
        ...

    def close(self) -> None:
        """End, within a few seconds."""
        ...


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen: an address and a port, or a unix socket."""

    host: str = ""
    port: int = 0
    path: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return self.path is not None or self.host in _LOOPBACK

    def __str__(self) -> str:
        """Return it as a person writes it."""
        if self.path is not None:
            return f"{_UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_listen(text: str) -> Listen:
    """Return where to listen, as an option says it."""
    if text.startswith(_UNIX):
        if not (path := text.removeprefix(_UNIX)):
            raise Misuse("--listen unix: needs a path", way_out="adjourn serve --listen unix:PATH")
        return Listen(path=path)
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
        is_place = host is not None and port is not None and not parts.path
    except ValueError:
        host, port, is_place = None, None, False
    if host is None or port is None or not is_place:
        raise Misuse(
            f"--listen {text} is not HOST:PORT or unix:PATH",
            way_out="adjourn serve --listen 127.0.0.1:7373",
        )
    return Listen(host=host, port=port)


def address_of(
    listen: Listen, *, public_url: str | None, has_tls: bool, is_behind_proxy: bool
) -> Address:
    """Return how the server is reached, or refuse to serve secrets in the clear."""
    if not listen.is_loopback and not has_tls and not is_behind_proxy:
        raise Misuse(
            f"{listen} can be reached from other machines, and tokens would pass in the clear",
            way_out=f"adjourn serve --listen {listen} --tls-cert CERT --tls-key KEY, or"
            " --behind-proxy if a proxy in front of it has TLS",
        )
    if public_url is None and (is_behind_proxy or listen.path is not None):
        raise Misuse(
            "behind a proxy the server needs to know its address: links, and where forms come from",
            way_out="adjourn serve --public-url https://adjourn.example",
        )
    scheme = "https" if has_tls else "http"
    own = "localhost" if listen.host in _LOOPBACK else listen.host
    shown = f"[{own}]" if ":" in own else own
    public = (public_url or f"{scheme}://{shown}:{listen.port}").rstrip("/")
    found = re.fullmatch(r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", public)
    if found is None:
        raise Misuse(
            f"--public-url {public} is not the address of a site: https://HOST, with no path",
            way_out="adjourn serve --public-url https://adjourn.example",
        )
    hosts = {found[2].strip("[]").lower(), listen.host} - {"", "0.0.0.0", "::"}  # noqa: S104 -- taken out
    return Address(
        public_url=public,
        hosts=frozenset(hosts | (_LOOPBACK if listen.is_loopback else frozenset())),
        is_secure=found[1] == "https",
        socket=listen.path,
    )


# --- the process ----------------------------------------------------------------------------------


class PeerProtocol(H11Protocol):
    """HTTP/1.1, with the user at the other end of a unix socket in `scope["adjourn.peer"]`."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is None or connection.family != socket.AF_UNIX:
            return
        size = struct.calcsize("3i")
        _, uid, _ = struct.unpack(
            "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        app: ASGIApp = self.app

        async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
            scope["adjourn.peer"] = uid
            await app(scope, receive, send)

        self.app = with_peer


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, begin: Callable[[], None]) -> None:
        super().__init__(config)
        self._begin = begin

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._begin()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to `serve`: uvicorn would raise them again, and the exit code with them."""
        yield


def serve(
    site: Site,
    app: Starlette,
    listen: Listen,
    *,
    tls: tuple[str, str] | None = None,
    is_behind_proxy: bool = False,
    background: Sequence[Background] = (),
    ready: Callable[[Listen], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT; then streams end, and requests are answered to their end."""
    config = uvicorn.Config(
        app,
        host=listen.host,
        port=listen.port,
        http=PeerProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=True,
        proxy_headers=is_behind_proxy and listen.path is None,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_PATIENCE,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    sites: list[Site] = [site, *app.state.others]
    asyncio.run(_serve(sites, config, listen, background, ready))


async def _serve(
    sites: Sequence[Site],
    config: uvicorn.Config,
    listen: Listen,
    background: Sequence[Background],
    ready: Callable[[Listen], None],
) -> None:
    def begin() -> None:
        for each in background:
            each.start()
        port = 0 if listen.path is not None else bound.getsockname()[1]
        ready(msgspec.structs.replace(listen, port=port))

    server, loop = _Server(config, begin), asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        for site in sites:
            site.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    bound = _bind(listen)
    try:
        await server.serve(sockets=[bound])
    finally:
        for each in background:
            each.close()
        bound.close()
        if listen.path is not None:
            with suppress(OSError):
                os.unlink(listen.path)


def _bind(listen: Listen) -> socket.socket:
    """Return a socket that listens, or say why it cannot."""
    if listen.path is None:
        # asyncio sends small pieces at once only where the protocol is named: else 40 ms a response
        protocol = socket.IPPROTO_TCP
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        place: tuple[str, int] | str = (listen.host, listen.port)
    else:
        protocol, family, place = 0, socket.AF_UNIX, listen.path
        _remove_dead_socket(listen.path)
    bound = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        if listen.path is None:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
        else:
            before = os.umask(0o117)  # who may connect is for the directory and the group to say
            try:
                bound.bind(place)
            finally:
                os.umask(before)
    except OSError as error:
        bound.close()
        raise Misuse(
            f"cannot listen on {listen}: {error.strerror or error}",
            way_out="adjourn serve --listen 127.0.0.1:7374",
        ) from None
    bound.set_inheritable(False)
    return bound


def _remove_dead_socket(path: str) -> None:
    """Remove the socket of a server that is gone; one that answers is left alone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError:
            return

"""What every request passes first, and every response last: hosts, origins, sizes, headers, log."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adjourn.core.text.when import stamp
from adjourn.system.machine import now
from adjourn.web.problems import HttpRefusal, problem_response
from adjourn.web.site import Address

LARGEST = 1024 * 1024  # bytes of a body
_HEALTH = "/healthz"  # a health check knows no name, and the answer is no secret
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer browsers would send `Origin: null` with forms, and we could not tell it
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def refuse_foreign(address: Address, method: str, headers: Headers) -> None:
    """Refuse a request that a page of somebody else's may have made.

    A foreign Host means that a name of theirs was pointed at this machine. What changes something
    must come from our own pages, or from a client that is no browser and has no cookie.
    """
    host = host_in(headers.get("host", ""))
    if host not in address.hosts:
        raise HttpRefusal(
            421,
            "unknown_host",
            f"this server is not called {host or 'that'}",
            way_out=f"adjourn serve --public-url URL; it is {address.public_url} now",
        )
    if method in _SAFE:
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_own = site == "same-origin"
    elif origin is not None:
        is_own = origin == address.public_url or is_own_origin(address, headers, origin)
    else:
        is_own = "cookie" not in headers
    if not is_own:
        raise HttpRefusal(
            403,
            "cross_site",
            "this request came from a page of another site",
            way_out=f"open {address.public_url}",
        )


def is_own_origin(address: Address, headers: Headers, origin: str) -> bool:
    """Return whether an origin is where this very request went to."""
    scheme = "https" if address.is_secure else "http"
    return origin == f"{scheme}://{headers.get('host', '')}"


def host_in(text: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """An ASGI application around the real one."""

    def __init__(
        self, app: ASGIApp, *, address: Address, log: Callable[[dict[str, object]], None]
    ) -> None:
        self._app = app
        self._address = address
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, began = Headers(scope=scope), time.monotonic()
        status, sent, taken = 0, 0, 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message))
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        async def receive_limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST:
                raise too_large()
            return message

        try:
            if scope["path"] != _HEALTH:
                refuse_foreign(self._address, scope["method"], headers)
            length = headers.get("content-length", "0")
            if length.isascii() and length.isdigit() and int(length) > LARGEST:
                raise too_large()
            await self._app(scope, receive_limited, send_with_headers)
        except HttpRefusal as error:
            if status:
                raise
            await problem_response(error)(scope, receive, send_with_headers)
        finally:
            milliseconds = round((time.monotonic() - began) * 1000, 1)
            self._log(log_entry(scope, status=status, sent=sent, milliseconds=milliseconds))

    def _add_headers(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        if self._address.is_secure:
            headers.setdefault("Strict-Transport-Security", "max-age=31536000")


def too_large() -> HttpRefusal:
    """Return the refusal of a body that is too large."""
    return HttpRefusal(413, "too_large", f"a body may have {LARGEST:,} bytes")


def log_entry(scope: Scope, *, status: int, sent: int, milliseconds: float) -> dict[str, object]:
    """Describe a request for the log: the pattern of its path and who it was, and no secret.

    Queries, headers and bodies are left out, and so is every path that no route has.
    """
    state: dict[str, Any] = scope.get("state") or {}
    return {
        "at": stamp(now()),
        "method": scope["method"],
        "route": getattr(scope.get("route"), "path", None),
        "status": status,
        "bytes": sent,
        "ms": milliseconds,
        "by": state.get("principal"),
    }


def write_log(entry: dict[str, object]) -> None:
    """Write one line of the access log to stderr."""
    sys.stderr.write(json.dumps(entry) + "\n")
    sys.stderr.flush()

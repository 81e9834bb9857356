"""Tells a webhook, signed as Standard Webhooks says."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from adjourn.core.authority.webhook import signature
from adjourn.ports.notifier import (
    BadTable,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)

_TAKEN = range(200, 300)
_MOVED = range(300, 400)


class _WebhookKeys(msgspec.Struct, forbid_unknown_fields=True):
    webhook: str


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the notifier that a table describes."""
    text = read_keys(values, _WebhookKeys).webhook
    url = _usable_url(text)
    return PreparedNotifier(
        notifier=WebhookNotifier(text, key=settings.secret(), timeout=settings.timeout),
        name=url.hostname or "",
        shown=f"{url.scheme}://{url.netloc}/…",
    )


def _usable_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
        is_usable = bool(url.hostname) and url.port != 0
    except ValueError as error:
        raise BadTable(f"`webhook` is not a URL: {error}") from error
    if not is_usable or not text.isascii() or not text.isprintable() or " " in text:
        raise BadTable("`webhook` is not a URL")
    if url.username is not None or url.password is not None:
        raise BadTable(
            "`webhook` must not carry a user or a password: it is signed with the secret"
        )
    if url.scheme != "https" and not (url.scheme == "http" and _is_this_machine(url.hostname)):
        raise BadTable(
            "`webhook` must be https; http goes to this machine only (127.0.0.1, ::1, localhost)"
        )
    return url


def _is_this_machine(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


class WebhookNotifier:
    """Posts each document to one URL.

    The receiver has taken it when it answers 2xx; redirects are not followed.
    """

    def __init__(self, url: str, *, key: bytes, timeout: float) -> None:
        self._url = urlsplit(url)
        self._key = key
        self._timeout = timeout
        self._connection: HTTPConnection | None = None

    def send(self, notice_id: str, body: bytes, *, at: int) -> None:
        """Post the document; it is signed as Standard Webhooks says."""
        headers = {
            "content-type": "application/json",
            "user-agent": "adjourn",
            "webhook-id": notice_id,
            "webhook-timestamp": str(at // 1000),
            "webhook-signature": signature(self._key, notice_id, body, at=at // 1000),
        }
        try:
            status = self._post(body, headers)
        except TimeoutError:
            raise NotDelivered(f"no answer within {self._timeout:g} s") from None
        except (OSError, HTTPException) as error:
            raise NotDelivered(f"no answer: {error!s:.200}") from error
        if status in _MOVED:
            raise NotDelivered(f"it answered {status}; redirects are not followed")
        if status not in _TAKEN:
            raise NotDelivered(f"it answered {status}")

    def _post(self, body: bytes, headers: dict[str, str]) -> int:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout)
        overdue = threading.Event()
        self._connection = connection
        try:
            connection.connect()
            with _deadline(connection.sock, self._timeout, overdue):
                connection.request("POST", self._target(), body=body, headers=headers)
                return connection.getresponse().status
        except (OSError, HTTPException):
            if overdue.is_set():
                raise TimeoutError from None
            raise
        finally:
            connection.close()

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        sock = self._connection and self._connection.sock
        if sock:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _target(self) -> str:
        return (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")


class _deadline:  # noqa: N801 -- reads as the verb that it is
    """Hang up on a receiver that answers a byte at a time: each byte alone comes in time."""

    def __init__(self, sock: socket.socket, seconds: float, overdue: threading.Event) -> None:
        self._sock = sock
        self._overdue = overdue
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True

    def _hang_up(self) -> None:
        self._overdue.set()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

"""Posts to one host at a time, within a time, and can be broken off from another thread."""

import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from adjourn.ports.notifier import BadTable, NotDelivered

_LARGEST_ANSWER = 8 * 1024 * 1024


def usable_url(text: str, *, key: str) -> SplitResult:
    """Return the URL of a config's key, or raise BadTable: `http` goes to this machine only."""
    try:
        url = urlsplit(text)
        is_usable = bool(url.hostname) and url.port != 0
    except ValueError as error:
        raise BadTable(f"`{key}` is not a URL: {error}") from error
    if not is_usable or not text.isascii() or not text.isprintable() or " " in text:
        raise BadTable(f"`{key}` is not a URL")
    if url.username is not None or url.password is not None:
        raise BadTable(f"`{key}` must not carry a user or a password")
    if url.scheme != "https" and not (url.scheme == "http" and is_this_machine(url.hostname)):
        raise BadTable(
            f"`{key}` must be https; http goes to this machine only (127.0.0.1, ::1, localhost)"
        )
    return url


def is_this_machine(host: str | None) -> bool:
    """Return whether a name or an address is this machine's own."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


class HttpPost:
    """Posts documents. Redirects are not followed, and no proxy is used."""

    def __init__(self) -> None:
        self._connection: HTTPConnection | None = None

    def post(
        self,
        url: str,
        body: bytes,
        headers: dict[str, str],
        *,
        timeout: float,
        most: int = _LARGEST_ANSWER,
    ) -> tuple[int, bytes]:
        """Return the status and so many bytes of the answer, or raise NotDelivered."""
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        overdue = threading.Event()
        self._connection = connection
        try:
            connection.connect()
            with _deadline(connection.sock, timeout, overdue):
                connection.request("POST", target, body=body, headers=headers)
                response = connection.getresponse()
                return response.status, response.read(most)
        except TimeoutError:
            raise NotDelivered(f"no answer within {timeout:g} s") from None
        except (OSError, HTTPException) as error:
            if overdue.is_set():
                raise NotDelivered(f"no answer within {timeout:g} s") from None
            raise NotDelivered(f"no answer: {error!s:.200}") from error
        finally:
            connection.close()

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        sock = self._connection and self._connection.sock
        if sock:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


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

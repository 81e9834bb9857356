"""Bearer tokens: who holds the one of a request. Strangers who try many are slowed down."""

import os
import time

from starlette.requests import Request

from adjourn.core.ask import Principal
from adjourn.settings.api_tokens import (
    ApiToken,
    digest_of_token,
    is_secret,
    read_tokens,
    tokens_path,
)
from adjourn.system.machine import now
from adjourn.web.problems import HttpRefusal
from adjourn.web.site import Site, site_of

_FAILURES, _WINDOW = 30, 60.0  # so many failures in so many seconds are let through
_MOST_CLIENTS = 1_000


class KnownTokens:
    """The tokens of the server's user, read again when their file has changed."""

    def __init__(self) -> None:
        self._seen: tuple[int, int, int] | None = None
        self._by_hash: dict[str, ApiToken] = {}
        self._failures: dict[str, list[float]] = {}

    def find(self, secret: str) -> ApiToken | None:
        """Return the token that a secret is of, if it still counts."""
        try:
            found = os.stat(tokens_path())
            seen = found.st_mtime_ns, found.st_ino, found.st_size
        except OSError:
            seen = None
        if seen != self._seen:
            self._by_hash = {each.sha256: each for each in read_tokens()} if seen else {}
            self._seen = seen
        token = self._by_hash.get(digest_of_token(secret)) if is_secret(secret) else None
        return None if token is None or token.is_over(now()) else token

    def refuse_many(self, client: str) -> None:
        """Refuse a client that failed too often, for a while."""
        since = time.monotonic() - _WINDOW
        recent = [at for at in self._failures.get(client, ()) if at > since]
        if len(recent) >= _FAILURES:
            raise HttpRefusal(
                429,
                "too_many_failures",
                "too many requests with a token that is not known",
                way_out="wait a minute",
                headers={"Retry-After": str(int(_WINDOW))},
            )
        if recent:
            self._failures[client] = recent
        else:
            self._failures.pop(client, None)

    def note_failure(self, client: str) -> None:
        """Remember that a client had no token that is known."""
        if len(self._failures) < _MOST_CLIENTS or client in self._failures:
            self._failures.setdefault(client, []).append(time.monotonic())


def token_of(request: Request) -> ApiToken | None:
    """Return the token that a request shows in its Authorization header, if it counts."""
    known: KnownTokens = request.app.state.tokens
    client = request.client.host if request.client else "socket"
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    token = known.find(secret.strip())
    if token is None:
        known.refuse_many(client)
        known.note_failure(client)
    return token


async def principal_of_bearer(request: Request) -> Principal | None:
    """Return who holds the token of a request."""
    token = token_of(request)
    return principal_through(site_of(request), token.principal) if token else None


def principal_through(site: Site, name: str) -> Principal:
    """Return a principal that speaks through this server: it is worth no more than its user."""
    return Principal(name=name, through=site.through)

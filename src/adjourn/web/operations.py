"""The operations of the API as a table: the routes and the OpenAPI document come from it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adjourn.core.ask import Principal
from adjourn.core.errors import Misuse, NotFound
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.web.api_types import Body, Query
from adjourn.web.problems import HttpRefusal
from adjourn.web.site import Site, site_of
from adjourn.web.who import require_principal

PREFIX = "/api/v1"
Q = TypeVar("Q")
B = TypeVar("B")
T = TypeVar("T")
_JSON = "application/json"


class ApiCall(Generic[Q, B]):
    """One request: who makes it, what for, and what it carries."""

    def __init__(self, request: Request, by: Principal, query: Q, body: B) -> None:
        self.request = request
        self.site: Site = site_of(request)
        self.by = by
        self.query = query
        self.body = body

    def name(self, key: str = "id") -> str:
        """Return what the path names."""
        return str(self.request.path_params[key])


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    run: Callable[[Any], Awaitable[Response]]
    answer: type | None = None  # None: it is not JSON, and `media` says what
    media: str = _JSON
    query: type[Query] | None = None
    body: Any = None  # a type of bodies, or several by their tag
    body_needed: bool = True
    scope: str = "any"
    status: int = 200
    more: tuple[int, ...] = ()  # statuses beside those that all have
    headers: tuple[tuple[str, str], ...] = ()  # that a request may have, each with its meaning


def routes_of(operations: Sequence[Operation]) -> list[BaseRoute]:
    """Return the routes of a table of operations."""
    by_path: dict[str, dict[str, Operation]] = {}
    for each in operations:
        by_path.setdefault(f"{PREFIX}{each.path}", {})[each.method] = each
    return [
        Route(path, _endpoint(methods), methods=list(methods)) for path, methods in by_path.items()
    ]


def _endpoint(methods: dict[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        operation = methods["GET" if request.method == "HEAD" else request.method]
        by = await require_principal(request)
        if any("\0" in value for value in (*request.path_params.values(), *request.query_params)):
            raise NotFound("no name has the character U+0000", way_out="/api/v1/openapi.json")
        query = read_query(request, operation.query) if operation.query else None
        body = await read_body(request, operation) if operation.body is not None else None
        return await operation.run(ApiCall(request, by, query, body))

    return answer


def read_query(request: Request, kind: type[Query]) -> Query:
    """Return what stands behind the question mark; what is unknown or twice there is refused."""
    given: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in given:
            raise Misuse(f"{key} is given twice", way_out="see /api/v1/openapi.json")
        given[key] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Misuse(f"the query does not fit: {error}", way_out="/api/v1/openapi.json") from None


async def read_body(request: Request, operation: Operation) -> Body | None:
    """Return the body of a request as its type, or say where it does not fit."""
    try:
        content = await request.body()
    except ClientDisconnect:
        raise HttpRefusal(400, "disconnected", "the client went away") from None
    if not content and not operation.body_needed:
        return None
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != _JSON:
        raise HttpRefusal(
            415, "not_json", f"a body is {_JSON}, and not {media or 'without a type'}"
        )
    try:
        if b"\\u0000" in content:
            raise Misuse("a text must not have the character U+0000", way_out="leave it out")
        decoded = decode_unambiguous(content, type=operation.body)
    except msgspec.ValidationError as error:
        raise Misuse(f"the body does not fit: {error}", way_out="/api/v1/openapi.json") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise HttpRefusal(400, "bad_json", f"the body is not JSON: {error}") from None
    body: Body = decoded
    return body


def given(value: T | msgspec.UnsetType) -> T | None:
    """Return what a query or a body has under a key, or None if it was left out."""
    return None if isinstance(value, msgspec.UnsetType) else value


def preferred_wait(request: Request) -> float | None:
    """Return how many seconds a client wants to wait, by `Prefer: wait=N` (RFC 7240)."""
    found = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})", request.headers.get("prefer", ""))
    return float(found[1]) if found else None

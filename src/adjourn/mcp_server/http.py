"""MCP over HTTP: one route of a Starlette application, stateless, for both eras.

A request that is answered at once gets JSON. One that waits gets a stream of events: progress while
it lasts, then the reply. The web application mounts it; it needs the extra `web`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from adjourn.core.errors import AdjournError
from adjourn.hub import Hub, News
from adjourn.mcp_server.protocol import (
    INVALID_REQUEST,
    Connection,
    Json,
    Request,
    Subscribed,
    Waiting,
    failure,
    progress_notice,
    updated,
)
from adjourn.mcp_server.server import ToolServer

_LARGEST = 4 * 1024 * 1024
_PROGRESS = 15.0
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})

# The principal of a request, by its bearer token; None refuses it
Principals = Callable[[HttpRequest], str | None]
OpenServer = Callable[[str], ToolServer]


class HttpServer:
    """Serves MCP at one path.

    One thread has all the stores that the tools use, and nothing else touches them.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        root: str,
        open_server: OpenServer,
        principal_of: Principals,
        hosts: frozenset[str] = _LOCAL,
    ) -> None:
        self._hub = hub
        self._root = root
        self._open_server = open_server
        self._principal_of = principal_of
        self._hosts = hosts
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="adjourn mcp")
        self._made: dict[str, tuple[ToolServer, Connection]] = {}

    def route(self, path: str = "/mcp") -> Route:
        """Return the route to mount. GET and DELETE are refused: there is no session."""
        return Route(path, self._answer, methods=["POST"])

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, http: HttpRequest) -> Response:
        # A page of a browser may send requests here under a name that resolves to this machine
        host = http.headers.get("host", "").rpartition(":")[0] or http.headers.get("host", "")
        origin = http.headers.get("origin", "").partition("://")[2].rpartition(":")
        if host not in self._hosts or (origin[2] and (origin[0] or origin[2]) not in self._hosts):
            return JSONResponse(failure(None, INVALID_REQUEST, "unknown host"), 403)
        principal = self._principal_of(http)
        if principal is None:
            refused = failure(None, INVALID_REQUEST, "a bearer token is needed")
            return JSONResponse(refused, 401, {"WWW-Authenticate": "Bearer"})
        body = await http.body()
        if len(body) > _LARGEST:
            return JSONResponse(failure(None, INVALID_REQUEST, "a message may have 4 MB"), 413)
        loop = asyncio.get_running_loop()
        read, answer = await loop.run_in_executor(self._threads, self._handle, principal, body)
        if answer is None:
            return Response(status_code=202)
        if isinstance(read, Request) and not isinstance(answer, dict):
            stream = self._stream(principal, read, answer)
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
        status = 200 if isinstance(read, Request) else 400
        return Response(msgspec.json.encode(answer), status, media_type="application/json")

    # --- in a thread ------------------------------------------------------------------------------

    def _connection(self, principal: str) -> tuple[ToolServer, Connection]:
        if principal not in self._made:
            server = self._open_server(principal)
            self._made[principal] = (server, Connection(server))
        return self._made[principal]

    def _handle(
        self, principal: str, body: bytes
    ) -> tuple[object, Json | Waiting | Subscribed | None]:
        _, connection = self._connection(principal)
        read = connection.read(body)
        if isinstance(read, Request):
            return read, connection.answer(read)
        return read, read if isinstance(read, dict) else None

    def _result(self, principal: str, wait: Waiting, *, is_late: bool) -> Json | None:
        server, _ = self._connection(principal)
        result = server.finish(lambda: wait.result(is_late=is_late))
        return result if isinstance(result, dict) else None

    # --- waiting ----------------------------------------------------------------------------------

    async def _stream(
        self, principal: str, request: Request, outcome: Waiting | Subscribed
    ) -> AsyncIterator[bytes]:
        """Send what a wait or a subscription brings, woken by the hub and by nothing else."""
        loop = asyncio.get_running_loop()
        changed: asyncio.Queue[News] = asyncio.Queue()

        def receive(news: News) -> None:
            loop.call_soon_threadsafe(changed.put_nowait, news)

        end = self._hub.subscribe(receive)
        try:
            if isinstance(outcome, Subscribed):
                yield _event(outcome.acknowledgement)
                while True:
                    news = await changed.get()
                    for uri in _uris(news):
                        if uri in outcome.uris:
                            yield _event(updated(uri, request.id))
            began = loop.time()
            result: Json | None = None
            while result is None:
                is_late = outcome.deadline is not None and outcome.deadline <= loop.time()
                look = partial(self._result, principal, outcome, is_late=is_late)
                result = await loop.run_in_executor(self._threads, look)
                if result is None and not await self._news(outcome, changed):
                    seconds = int(loop.time() - began)
                    notice = progress_notice(request, seconds, "still waiting")
                    if notice:
                        yield _event(notice)
            yield _event(self._connection(principal)[1].reply(request, result))
        except AdjournError as error:
            yield _event(failure(request.id, INVALID_REQUEST, error.sentence))
        finally:
            end()

    async def _news(self, wait: Waiting, changed: "asyncio.Queue[News]") -> bool:
        """Wait for news that concern a wait; return whether they came before it is time to look."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + _PROGRESS
        if wait.deadline is not None:
            limit = min(limit, wait.deadline)
        while (rest := limit - loop.time()) > 0:
            try:
                news = await asyncio.wait_for(changed.get(), rest)
            except TimeoutError:
                return False
            tasks = frozenset(each.event.task_id for each in news.events)
            if news.is_opening or wait.concerns(tasks):
                return True
        return False


def _uris(news: News) -> list[str]:
    from adjourn.mcp_server.resources import uris_of  # only streams need it

    found: dict[str, None] = {}
    for each in news.events:
        found |= dict.fromkeys(uris_of(each.event.task_id, each.event.kind))
    return list(found)


def _event(message: Any) -> bytes:
    return b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n"

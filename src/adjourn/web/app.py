"""Makes the application of its routes: the API, the pages and MCP, behind one guard."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError
from adjourn.web.guard import Guard, write_log
from adjourn.web.problems import HttpRefusal, problem_response
from adjourn.web.site import Site, site_of
from adjourn.web.tokens import KnownTokens

LogWriter = Callable[[dict[str, object]], None]


def build_app(
    site: Site,
    *,
    routes: Sequence[BaseRoute],
    others: Sequence[Site] = (),
    log: LogWriter = write_log,
) -> Starlette:
    """Return the application. It follows the store while it runs, and others that pages show."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
        del app
        for each in (site, *others):
            each.start()
            with suppress(AdjournError):  # the next request gets the error
                await each.call(each.supervisors.adopt_left)
                await each.call(each.metrics.begin)
        try:
            yield
        finally:
            for each in (site, *others):
                each.stop()
            for each in (site, *others):
                each.close()

    app = Starlette(
        routes=[Route("/healthz", _health, methods=["GET"]), *routes],
        middleware=[Middleware(Guard, address=site.address, log=log)],
        exception_handlers={
            AdjournError: _tell_error,
            HTTPException: _tell_http_error,
            Exception: _tell_defect,
        },
        lifespan=lifespan,
    )
    app.state.site = site
    app.state.others = others
    app.state.tokens = KnownTokens()
    return app


async def _health(request: Request) -> Response:
    """Say whether the store can be read: to anybody, and nothing else."""

    def read(controller: Controller) -> None:
        with controller.store.read() as view:
            view.trail_head()

    try:
        await site_of(request).call(read)
    except AdjournError:
        return Response(b'{"status":"store unavailable"}', 503, media_type="application/json")
    return Response(b'{"status":"ok"}', media_type="application/json")


async def _tell_error(request: Request, error: Exception) -> Response:
    """Answer an error in the form of the reader: a client of the API, or a person."""
    assert isinstance(error, AdjournError)  # noqa: S101 -- it is the handler of those
    if request.url.path.startswith(("/api/", "/healthz", "/metrics", "/mcp")):
        return problem_response(error, site_of(request).redactor)
    # Pages need a package more
    from adjourn.web.pages import error_page

    return await error_page(request, error)


async def _tell_defect(request: Request, error: Exception) -> Response:
    """Report a defect without its details; the log has them."""
    del error
    sentence = "the server failed: this is a defect in adjourn, and its log says more"
    return await _tell_error(request, HttpRefusal(500, "defect", sentence))


async def _tell_http_error(request: Request, error: Exception) -> Response:
    """Answer what the routes themselves refuse: an unknown path or method."""
    assert isinstance(error, HTTPException)  # noqa: S101 -- it is the handler of those
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
    refusal = HttpRefusal(
        error.status_code, code, error.detail, headers=dict(error.headers or {}) or None
    )
    return await _tell_error(request, refusal)

"""All routes of the server: what `adjourn serve` puts together."""

from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adjourn.mcp_server.control import Control
from adjourn.mcp_server.http import HttpServer
from adjourn.mcp_server.server import ToolServer
from adjourn.web.api import OPERATIONS
from adjourn.web.links import link_routes
from adjourn.web.openapi import document_routes
from adjourn.web.operations import routes_of
from adjourn.web.pages import page_routes
from adjourn.web.site import Site, site_of
from adjourn.web.tokens import token_of
from adjourn.web.who import require_principal

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def all_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the API, of MCP, of links in messages and of the pages."""
    return [
        *routes_of(OPERATIONS),
        *document_routes(),
        Route("/metrics", _metrics, methods=["GET"]),
        mcp_route(site),
        *link_routes(),
        *page_routes(),
    ]


async def _metrics(request: Request) -> Response:
    """Return the figures for Prometheus; a token is needed for them."""
    await require_principal(request)
    site = site_of(request)
    return Response(await site.call(site.metrics.text), media_type=_PROMETHEUS)


def mcp_route(site: Site) -> BaseRoute:
    """Return the route of MCP, for those who hold a token of an agent."""

    def open_server(principal: str) -> ToolServer:
        def control() -> Control:
            return Control(site.root, name=principal, inside_run=None, commands=site.commands)

        return ToolServer(site.root, version=version("adjourn"), open_control=control)

    def agent_of(request: Request) -> str | None:
        token = token_of(request)
        request.state.principal = token.principal if token else None
        return token.principal if token and token.kind == "agent" else None

    names = site.address.hosts | {f"[{host}]" for host in site.address.hosts if ":" in host}
    mcp = HttpServer(
        site.hub, root=site.root, open_server=open_server, principal_of=agent_of, hosts=names
    )
    site.closing.append(mcp.close)
    return mcp.route()

"""The pages."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from adjourn.core.errors import AdjournError


def page_routes() -> list[BaseRoute]:
    """Return the routes of all pages."""
    return []


async def error_page(request: Request, error: AdjournError) -> Response:
    """Return the page that tells of an error."""
    del request
    return Response(error.sentence, 500, media_type="text/plain")

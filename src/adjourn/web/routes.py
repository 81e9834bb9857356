"""All routes of the server: what `adjourn serve` puts together."""

from starlette.routing import BaseRoute

from adjourn.web.pages import page_routes
from adjourn.web.site import Site


def all_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the API and of the pages."""
    del site
    return [*page_routes()]

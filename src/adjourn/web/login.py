"""Sessions of browsers."""

from starlette.requests import Request

from adjourn.core.ask import Principal


async def principal_of_session(request: Request) -> Principal | None:
    """Return whose session the cookie of a request names, if any."""
    del request
    return None

"""Who makes a request: the holder of a bearer token, or of a session's cookie."""

from starlette.requests import Request

from adjourn.core.ask import Principal
from adjourn.web.login import principal_of_session
from adjourn.web.problems import HttpRefusal
from adjourn.web.tokens import principal_of_bearer


async def principal_of(request: Request) -> Principal | None:
    """Return who makes a request, or None for a stranger. The log gets the name."""
    if "authorization" in request.headers:
        found = await principal_of_bearer(request)
    else:
        found = await principal_of_session(request)
    request.state.principal = found.name if found else None
    return found


async def require_principal(request: Request) -> Principal:
    """Return who makes a request, or refuse a stranger."""
    found = await principal_of(request)
    if found is None:
        raise HttpRefusal(
            401,
            "not_authenticated",
            "a bearer token is needed, one that is known and has not expired",
            way_out="adjourn tokens add NAME --scope answer",
            headers={"WWW-Authenticate": 'Bearer realm="adjourn"'},
        )
    return found

"""Sessions of browsers: one-time links, the cookie, and who a request is from."""

from http.cookies import CookieError
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adjourn.core.ask import Principal
from adjourn.core.text.when import stamp
from adjourn.process.ancestry import enclosing_run
from adjourn.settings.web_proxy import WebTable, read_web_table
from adjourn.settings.web_sessions import (
    SESSION_LASTS,
    begin_session,
    end_all_of,
    end_session,
    find_session,
    sessions_of,
    use_link,
)
from adjourn.settings.web_users import WebUser, find_user, read_users
from adjourn.system.machine import now
from adjourn.web.forms import local_path, read_form
from adjourn.web.problems import HttpRefusal
from adjourn.web.site import Address, Site, site_of
from adjourn.web.templating import page
from adjourn.wiring.passkey_users import is_installed

_USED = "That link is unknown, was used, or is older than ten minutes."


def login_routes() -> list[BaseRoute]:
    """Return the routes by which people come and go."""
    return [
        Route("/login", _show_login, methods=["GET"]),
        Route("/login", _log_in, methods=["POST"]),
        Route("/logout", _log_out, methods=["POST"]),
        Route("/account", _show_account, methods=["GET"]),
    ]


# --- who it is ------------------------------------------------------------------------------------


async def principal_of_session(request: Request) -> Principal | None:
    """Return whose session the cookie of a request names, if any."""
    user = user_of(request)
    return principal_of_user(site_of(request), user.name) if user else None


def principal_of_user(site: Site, name: str) -> Principal:
    """Return as whom a user decides: through the server, which is its user's and no more."""
    return Principal(name=f"web:{name}", through=site.through, inside_run=enclosing_run())


def user_of(request: Request) -> WebUser | None:
    """Return the user whose session the cookie names, while the session and the user last.

    Or the one whom a trusted proxy names: on a unix socket, from a process of the proxy's user.
    """
    proxy = _trusted_proxy(request)
    if proxy is not None:
        named = request.headers.getlist(proxy.proxy_header)
        return find_user(named[0]) if len(named) == 1 else None
    token = _cookie(request)
    session = find_session(token, now=now()) if token else None
    return find_user(session.user) if session else None


def _trusted_proxy(request: Request) -> WebTable | None:
    """Return the proxy at the other end of a request, if the config trusts it."""
    peer = request.scope.get("adjourn.peer")
    if peer is None or site_of(request).address.socket is None:
        return None
    table = read_web_table()
    return table if table and table.proxy_uid == peer else None


async def require_login(request: Request) -> Principal:
    """Return who is logged in. A page leads strangers to the login, a form is refused."""
    found = await principal_of_session(request)
    request.state.principal = found.name if found else None
    if found is not None:
        return found
    if request.method in {"GET", "HEAD"}:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        raise HttpRefusal(
            303,
            "login",
            "log in first",
            headers={"Location": f"/login?next={quote(path, safe='')}"},
        )
    raise HttpRefusal(401, "login", "you are not logged in", way_out="adjourn users link NAME")


def host_for_passkeys(request: Request) -> str:
    """Return the name that passkeys of this server are bound to, or say why there are none."""
    why = why_no_passkeys(site_of(request).address)
    if why:
        raise HttpRefusal(409, "no_passkeys", why, way_out="pip install 'adjourn[passkeys]'")
    return urlsplit(site_of(request).address.public_url).hostname or ""


def own_passkey_host(request: Request) -> str | None:
    """Return the name that the user's passkeys are bound to, if they have one for this server."""
    user = user_of(request)
    if user is None or not user.passkeys or why_no_passkeys(site_of(request).address):
        return None
    host = host_for_passkeys(request)
    return host if any(each.rp_id == host for each in user.passkeys) else None


def why_no_passkeys(address: Address) -> str | None:
    """Return why no passkey works with this server, or None if they do."""
    host = urlsplit(address.public_url).hostname or ""
    if not is_installed():
        return "Passkeys need one more package: pip install 'adjourn[passkeys]'."
    if ":" in host or host.replace(".", "").isdigit():
        return "Passkeys need a name: open this server as localhost, or give it --public-url."
    if not address.is_secure and host != "localhost":
        return "Passkeys need HTTPS: serve with --tls-cert and --tls-key, or behind a proxy."
    return None


def _cookie_name(address: Address) -> str:
    return "__Host-adjourn" if address.is_secure else "adjourn"


def _cookie(request: Request) -> str | None:
    try:
        return request.cookies.get(_cookie_name(site_of(request).address))
    except CookieError:
        return None


def with_session(request: Request, response: Response, user: str, *, how: str) -> Response:
    """Return a response that begins a session."""
    address = site_of(request).address
    response.set_cookie(
        _cookie_name(address),
        begin_session(user, how=how, now=now()),
        max_age=SESSION_LASTS // 1000,
        path="/",
        secure=address.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


# --- pages ----------------------------------------------------------------------------------------


async def _show_login(request: Request) -> Response:
    return _login_page(request, following=local_path(request.query_params.get("next", "/")))


def _login_page(
    request: Request, *, following: str, error: str | None = None, status: int = 200
) -> Response:
    has_passkeys = why_no_passkeys(site_of(request).address) is None and any(
        user.passkeys for user in read_users()
    )
    return page(
        "login.html",
        status=status,
        title="Log in",
        next=following,
        error=error,
        has_passkeys=has_passkeys,
        needs_passkeys=has_passkeys,
    )


async def _log_in(request: Request) -> Response:
    """Take a link's token, once. A whole link may be pasted."""
    form = await read_form(request)
    following = local_path(form.get("next"))
    token = form.get("code").strip().rpartition("#")[2]
    name = use_link(token, now=now()) if token else None
    user = find_user(name) if name else None
    if user is None:
        return _login_page(request, following=following, error=_USED, status=403)
    request.state.principal = f"web:{user.name}"
    return with_session(request, RedirectResponse(following, 303), user.name, how="link")


async def _log_out(request: Request) -> Response:
    user, token = user_of(request), _cookie(request)
    form = await read_form(request)
    if user and form.get("everywhere"):
        end_all_of(user.name, now=now())
    elif token:
        end_session(token, now=now())
    response = RedirectResponse("/login", 303)
    response.delete_cookie(
        _cookie_name(site_of(request).address),
        secure=site_of(request).address.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


async def _show_account(request: Request) -> Response:
    await require_login(request)
    user, token = user_of(request), _cookie(request)
    if user is None:
        raise HttpRefusal(401, "login", "you are not logged in")
    why = why_no_passkeys(site_of(request).address)
    this = find_session(token, now=now()) if token else None
    sessions = [
        {"since": stamp(each.began_at), "how": each.how, "is_this": each == this}
        for each in sessions_of(user.name, now=now())
    ]
    return page(
        "account.html",
        title=user.name,
        user=user.name,
        here="/account",
        scopes=", ".join(user.scopes) or "look, and nothing else",
        passkeys=user.passkeys,
        passkeys_work=why is None,
        needs_passkeys=why is None,
        why_no_passkeys=why,
        sessions=sessions,
    )

"""adjourn serve: the HTTP API, the pages and MCP, in one process."""

import os
import sys
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from adjourn.cli.foreground import require_redaction
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.authority.scopes import Scope
from adjourn.core.errors import AdjournError, Misuse, NotAllowed
from adjourn.core.text.when import stamp
from adjourn.process.ancestry import enclosing_run
from adjourn.system.machine import now
from adjourn.wiring import open_decisions
from adjourn.wiring.all_stores import registered_stores

if TYPE_CHECKING:  # it needs an optional package
    from adjourn.web.serve import Listen


class Given(TypedDict):
    """Where to serve, and how it is reached."""

    listen: str
    public_url: str | None
    tls_cert: str | None
    tls_key: str | None
    behind_proxy: bool
    everywhere: bool


@verb("serve")
@click.option(
    "--listen",
    default="127.0.0.1:7373",
    show_default=True,
    metavar="HOST:PORT|unix:PATH",
    help="Where to listen.",
)
@click.option("--public-url", metavar="URL", help="How browsers reach it: https://HOST.")
@click.option("--tls-cert", metavar="FILE", help="The certificate, with --tls-key: serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of it has TLS.")
@click.option("--everywhere", is_flag=True, help="The pages show all your stores, not only this.")
def command(session: Session, **given: Unpack[Given]) -> int:
    """Serve the HTTP API, the pages and MCP of one store, until told to stop.

    Off loopback it needs TLS, or a proxy that has it. SIGTERM or Ctrl+C stops it: requests are
    answered to their end.
    """
    if enclosing_run():
        raise NotAllowed(
            "serve is refused inside a run: what runs under adjourn may ask, never decide",
            way_out="start it from a terminal of your own",
        )
    try:
        # Needs an optional package
        from adjourn.web.app import build_app
        from adjourn.web.notify_helpers import NotifyHelpers
        from adjourn.web.routes import all_routes
        from adjourn.web.serve import address_of, read_listen, serve
        from adjourn.web.site import Site
    except ImportError as error:
        raise Misuse(
            f"serve needs what is not installed: {error.name}", way_out="pip install 'adjourn[web]'"
        ) from None
    if (given["tls_cert"] is None) != (given["tls_key"] is None):
        raise Misuse("--tls-cert and --tls-key go together", way_out="adjourn serve --help")
    tls = _readable(given["tls_cert"], given["tls_key"])
    listen = read_listen(given["listen"])
    address = address_of(
        listen,
        public_url=given["public_url"],
        has_tls=tls is not None,
        is_behind_proxy=given["behind_proxy"],
    )
    require_redaction(session)
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    controller.decisions.authorise_alone(by, "serve")
    controller.decisions.note_place(by)
    controller.store.close()

    site = Site(session.root, address=address, commands=session.commands, through=by.name)
    roots = registered_stores() if given["everywhere"] else []
    others = [
        Site(root, address=address, commands=session.commands_for(root), through=_user_of(root))
        for root in roots
        if os.path.realpath(root) != os.path.realpath(session.root)
    ]
    app = build_app(site, routes=all_routes(site), others=others)
    serve(
        site,
        app,
        listen,
        tls=tls,
        is_behind_proxy=given["behind_proxy"],
        background=[
            NotifyHelpers(root) for root in (session.root, *(each.root for each in others))
        ],
        ready=lambda bound: _tell_ready(session, address.public_url, bound),
    )
    return 0


def _tell_ready(session: Session, public_url: str, bound: "Listen") -> None:
    """Say where it is served, and to a terminal by which link a person logs in, once."""
    # Only a server that has begun needs it
    from adjourn.settings.web_sessions import make_link, note_url

    if public_url.endswith(":0"):  # any port that was free
        public_url = f"{public_url.removesuffix(':0')}:{bound.port}"
    session.warn(f"adjourn: serving {public_url} on {bound}")
    note_url(public_url)
    if sys.stderr.isatty():
        name = _first_user()
        link = f"{public_url}/login#{make_link(name, now=now())}"
        session.warn(f"adjourn: log in as {name} within ten minutes, once: {link}")
    else:
        session.warn(f"adjourn: log in with a link: {session.commands('users', 'link', 'NAME')}")


def _user_of(root: str) -> str:
    """Return who decides in another store through this server: its user, or its login there."""
    try:
        decisions = open_decisions(root)
    except AdjournError:  # the pages say so; nobody decides there
        return f"uid:{os.getuid()}"
    name = decisions.principal().name
    decisions.store.close()
    return name


def _first_user() -> str:
    """Return who gets the first link: the user of the server, added if need be."""
    # Only at a terminal
    import getpass

    # Only at a terminal
    from adjourn.settings.web_users import add_user, find_user, is_user_name, read_users

    try:
        own = getpass.getuser().lower()
    except (OSError, KeyError):
        own = ""
    name = own if is_user_name(own) else "owner"
    if find_user(name) is None:
        users = read_users()
        if users:
            return users[0].name
        add_user(name, (Scope.REQUEST, Scope.ANSWER, Scope.APPROVE), at=stamp(now()))
    return name


def _readable(cert: str | None, key: str | None) -> tuple[str, str] | None:
    """Return the two files of TLS, or say which one cannot be read."""
    if cert is None or key is None:
        return None
    for path in (cert, key):
        if not os.access(path, os.R_OK):
            raise Misuse(f"{path} cannot be read", way_out="adjourn serve --help")
    return cert, key

"""adjourn serve: the HTTP API, the pages and MCP, in one process."""

import os
from typing import TypedDict, Unpack

import click

from adjourn.cli.foreground import require_redaction
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.process.ancestry import enclosing_run


class Given(TypedDict):
    """Where to serve, and how it is reached."""

    listen: str
    public_url: str | None
    tls_cert: str | None
    tls_key: str | None
    behind_proxy: bool


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
    app = build_app(site, routes=all_routes(site))
    serve(
        site,
        app,
        listen,
        tls=tls,
        is_behind_proxy=given["behind_proxy"],
        ready=lambda bound: session.warn(f"adjourn: serving {address.public_url} on {bound}"),
    )
    return 0


def _readable(cert: str | None, key: str | None) -> tuple[str, str] | None:
    """Return the two files of TLS, or say which one cannot be read."""
    if cert is None or key is None:
        return None
    for path in (cert, key):
        if not os.access(path, os.R_OK):
            raise Misuse(f"{path} cannot be read", way_out="adjourn serve --help")
    return cert, key

"""adjourn users: who may log in to the web inbox."""

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.authority.scopes import Scope, refuse_inside
from adjourn.core.text.when import stamp
from adjourn.settings.web_sessions import LINK_LASTS, end_all_of, make_link, noted_url
from adjourn.settings.web_users import add_user, read_users, remove_user, require_user
from adjourn.system.machine import now
from adjourn.views.block import Table
from adjourn.wiring.ownership import require_outside_of_all_runs

_USUAL = (Scope.ANSWER.value, Scope.APPROVE.value)


@click.group("users", no_args_is_help=False)
def command() -> None:
    """Say who may log in to `adjourn serve`, and make the links by which they do.

    A user is web:NAME where decisions are recorded, and passkey:NAME where a passkey signed one.
    """


@verb("add", prints_whole=True)
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    default=_USUAL,
    show_default=True,
    help="What the user may do; give it several times.",
)
@click.option("--url", metavar="URL", help="What the link begins with; else as the server says.")
def add(session: Session, *, name: str, scopes: tuple[str, ...], url: str | None) -> None:
    """Add a user, and print a link by which they log in."""
    _authorise(session, "users add")
    made = add_user(name, tuple(map(Scope, dict.fromkeys(scopes))), at=stamp(now()))
    if not session.wants_json:
        session.print(f"Added {made.name}: {', '.join(made.scopes)}")
    _print_link(session, made.name, url)


@verb("link", prints_whole=True)
@click.argument("name")
@click.option("--url", metavar="URL", help="What the link begins with; else as the server says.")
def link(session: Session, *, name: str, url: str | None) -> None:
    """Print a link by which a user logs in: it serves once, within ten minutes."""
    _authorise(session, "users link")
    _print_link(session, require_user(name).name, url)


@verb("list")
def list_all(session: Session) -> None:
    """List the users, with their scopes and passkeys."""
    users = read_users()
    if session.wants_json:
        session.print_document({"schema_version": 1, "users": users})
    elif users:
        rows = [
            (user.name, ", ".join(user.scopes), str(len(user.passkeys)), user.at) for user in users
        ]
        session.show([Table(head=("USER", "SCOPES", "PASSKEYS", "SINCE"), rows=rows)])
    else:
        session.print(f"There are no users. Add one: {session.commands('users', 'add', 'NAME')}")


@verb("remove")
@click.argument("name")
def remove(session: Session, *, name: str) -> None:
    """Remove a user: sessions, links and passkeys end. What was decided stays decided."""
    _authorise(session, "users remove")
    remove_user(name)
    end_all_of(name, now=now())
    if session.wants_json:
        session.print_document({"schema_version": 1, "removed": name})
    else:
        session.print(f"Removed {name}. What their passkeys signed is not valid any more.")


def _authorise(session: Session, verb_of: str) -> None:
    """Refuse what is part of a run: it could let itself in."""
    controller = session.open_controller() if session.has_store else None
    by = session.principal(controller.decisions if controller else None)
    refuse_inside(by, verb_of)
    require_outside_of_all_runs(verb_of)
    if controller:
        controller.decisions.authorise_alone(by, verb_of)


def _print_link(session: Session, name: str, url: str | None) -> None:
    moment = now()
    token = make_link(name, now=moment)
    address = f"{(url or noted_url()).rstrip('/')}/login#{token}"
    if session.wants_json:
        session.is_copy = False  # the link is what was asked for
        document = {"user": name, "link": address, "expires_at": stamp(moment + LINK_LASTS)}
        session.print_document({"schema_version": 1, **document})
        return
    session.print(f"Log in within ten minutes, once: {address}")


for each in (add, link, list_all, remove):
    command.add_command(each)

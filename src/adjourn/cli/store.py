"""adjourn store: look after the store."""

import os

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.errors import Conflict
from adjourn.wiring.controller import back_up, name_of


@click.group("store", no_args_is_help=False)
def command() -> None:
    """Look after the store."""


@verb("backup")
@click.argument("target", type=click.Path())
def backup(session: Session, *, target: str) -> None:
    """Copy the store, as of one moment and while it is in use, into the new file TARGET."""
    path = os.path.abspath(target)
    if os.path.lexists(path):
        raise Conflict(f"{path} exists already", way_out="name a file that does not exist")
    back_up(session.controller, path)
    if session.wants_json:
        session.document({"schema_version": 1, "backup": path, "bytes": os.path.getsize(path)})
    else:
        session.say(f"Backed up {name_of(session.root)} to {path} ({os.path.getsize(path):,} bytes).")


@verb("migrate")
@click.option("--from", "source", type=click.Path(), metavar="DIR", help="Move all that this directory keeps into the database.")
def migrate(session: Session, *, source: str | None) -> None:
    """Bring the store's schema up to date; with --from, move a store of one machine into a database that machines share."""
    if source is None:
        session.controller.store.close()  # whoever opens a store brings it up to date
        if session.wants_json:
            session.document({"schema_version": 1, "store": name_of(session.root)})
        else:
            session.say(f"{name_of(session.root)} is up to date.")
        return
    from adjourn.wiring.migration import migrate as move

    moved = move(source, session.root)
    counts = {"tasks": len(moved.tasks), "asks": len(moved.asks), "events": len(moved.events)}
    if session.wants_json:
        session.document({"schema_version": 1, "from": os.path.abspath(source), **counts})
    else:
        told = ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for name, count in counts.items())
        session.say(f"Moved {told}, and compared each of them.")
        session.say(f"{source} leads to the database from now on; what it kept is put aside there.")


@verb("roles")
def roles(session: Session) -> None:
    """Make the roles adjourn_agent, adjourn_approver and adjourn_worker in the database: it holds each to what it may do."""
    from adjourn.wiring.migration import ROLES, make_roles

    make_roles(session.controller)
    if session.wants_json:
        session.document({"schema_version": 1, "roles": list(ROLES)})
        return
    session.say("Made the roles adjourn_agent, adjourn_approver and adjourn_worker. Give each login one of them:")
    session.say("  GRANT adjourn_worker TO ci; GRANT adjourn_approver TO anna; GRANT adjourn_agent TO bot;")


command.add_command(backup)
command.add_command(roles)
command.add_command(migrate)

"""adjourn store: look after the store."""

import os

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.errors import Conflict
from adjourn.wiring.controller import back_up


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
        session.say(f"Backed up {session.root} to {path} ({os.path.getsize(path):,} bytes).")


command.add_command(backup)

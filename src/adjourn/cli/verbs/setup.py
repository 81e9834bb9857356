"""adjourn setup: make adjourn known to a host that speaks MCP."""

import click

from adjourn.cli.options import AnyOf, verb
from adjourn.cli.session import Session
from adjourn.core.authority.scopes import refuse_inside
from adjourn.core.text.render import visible
from adjourn.wiring.host_setup import HOSTS, set_up, take_back
from adjourn.wiring.ownership import require_outside_of_all_runs


@verb("setup")
@click.argument("host", type=AnyOf(list(HOSTS)))
@click.option("--undo", is_flag=True, help="Remove adjourn from the host, and revoke its secret.")
@click.option(
    "--project", is_flag=True, help="For this project only, in your own settings (claude)."
)
def command(session: Session, *, host: str, undo: bool, project: bool) -> None:
    """Make `adjourn mcp` known to HOST (claude or codex), by the host's own command.

    The host gets a secret of its own, of which adjourn keeps the hash: tasks that it starts are
    agent:HOST's in every session, and only it decides for them, beside people.
    """
    controller = session.open_controller() if session.has_store else None
    by = session.principal(controller.decisions if controller else None)
    refuse_inside(by, "setup")
    require_outside_of_all_runs("setup")
    if controller:
        controller.decisions.authorise_alone(by, "setup")
    change = (take_back if undo else set_up)(host, is_project=project)
    if session.wants_json:
        session.print_document({"schema_version": 1, "setup": change})
        return
    session.print(f"{'Removed from' if undo else 'Added to'} {visible(change.config)}:")
    session.print("\n".join(visible(row) for row in change.difference.split("\n")))
    if not undo:
        session.print(f"{host} says:")
        session.print("\n".join(f"  {visible(row)}" for row in change.check.split("\n")))
        session.print(f"Undo with: {session.commands('setup', host, '--undo')}")

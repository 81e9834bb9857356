"""adjourn setup: the first policy and settings, or make adjourn known to a host of MCP."""

import click

from adjourn.cli.options import AnyOf, verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.authority.scopes import refuse_inside
from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible
from adjourn.core.text.when import milliseconds
from adjourn.wiring.host_setup import HOSTS, HostChange, set_up, take_back
from adjourn.wiring.ownership import require_outside_of_all_runs
from adjourn.wiring.prompt_setup import change_prompts


@verb("setup")
@click.argument("host", type=AnyOf(list(HOSTS)), required=False)
@click.option("--undo", is_flag=True, help="Remove adjourn from the host, and revoke its secret.")
@click.option(
    "--project", is_flag=True, help="For this project only, in your own settings (claude)."
)
@click.option(
    "--interactive",
    is_flag=True,
    help="Put your policy and your inbox behind the permission prompts of your own sessions"
    " (claude).",
)
@click.option(
    "--for",
    "time",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="With --interactive: how long a prompt is in your inbox.",
)
def command(
    session: Session, *, host: str | None, undo: bool, project: bool, interactive: bool, time: str
) -> int:
    """Walk through the default gate, the first policy and a notification, and write them.

    With HOST (claude or codex), make `adjourn mcp` known to it, by the host's own command. The
    host gets a secret of its own, of which adjourn keeps the hash: tasks that it starts are
    agent:HOST's in every session, and only it decides for them, beside people.
    """
    controller = session.open_controller() if session.has_store else None
    by = session.principal(controller.decisions if controller else None)
    refuse_inside(by, "setup")
    require_outside_of_all_runs("setup")
    if controller:
        controller.decisions.authorise_alone(by, "setup")
    if host is None:
        if undo or project or interactive:
            sentence = "--undo, --project and --interactive go with a host"
            raise Misuse(sentence, way_out="adjourn setup claude")
        # Only at a terminal
        from adjourn.cli.verbs._first_setup import set_up_here

        return set_up_here(session)
    if interactive:
        change = _change_prompts(host, undo=undo, project=project, time=time)
    else:
        change = (take_back if undo else set_up)(host, is_project=project)
    if session.wants_json:
        session.print_document({"schema_version": 1, "setup": change})
        return exits.COMPLETED
    session.print(f"{'Removed from' if undo else 'Added to'} {visible(change.config)}:")
    session.print("\n".join(visible(row) for row in change.difference.split("\n")))
    if not undo:
        session.print(f"{host} says:")
        session.print("\n".join(f"  {visible(row)}" for row in change.check.split("\n")))
        words = ["--interactive"] if interactive else []
        session.print(f"Undo with: {session.commands('setup', host, *words, '--undo')}")
    return exits.COMPLETED


def _change_prompts(host: str, *, undo: bool, project: bool, time: str) -> HostChange:
    """Put adjourn behind the prompts of a person's own sessions, or take it away."""
    if host != "claude":
        raise Misuse(
            f"{host} has no hook beside its permission prompt",
            way_out=f"adjourn run --runner {host} PROMPT",
        )
    try:
        seconds = milliseconds(time) // 1000
    except ValueError:
        raise Misuse(
            f"--for {time!r} is not a length of time", way_out="write it as 90s, 15m or 8h"
        ) from None
    return change_prompts(is_project=project, seconds=None if undo else seconds)

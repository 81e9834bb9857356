"""adjourn delegate: let an agent decide for a task that it did not start."""

import click

from adjourn.cli.options import DURATION, verb
from adjourn.cli.session import Session
from adjourn.controller.decisions import ENOUGH
from adjourn.core.authority.delegation import Delegation
from adjourn.core.authority.scopes import AGENT
from adjourn.core.text.render import visible
from adjourn.core.text.when import stamp

_DAY = 24 * 60 * 60 * 1000


@click.group("delegate", no_args_is_help=False)
def command() -> None:
    """Let an agent decide for a task that it did not start, and for all below it.

    An agent that speaks MCP decides for what it started itself. A rule that says human, or never,
    holds for it all the same.
    """


@verb("add")
@click.argument("agent")
@click.argument("task", metavar="TASK")
@click.option(
    "--for",
    "lasts",
    type=DURATION,
    default=_DAY,
    metavar="TIME",
    help="How long it holds: 30m, 8h, 2d (default: one day).",
)
def add(session: Session, *, agent: str, task: str, lasts: int) -> None:
    """Let AGENT (as `adjourn setup` named it: claude) decide for TASK and all below it."""
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    controller.decisions.authorise(by, "delegate")
    found = controller.decisions.find_task(task, shortest=ENOUGH)
    name = agent if agent.startswith(f"{AGENT}:") else f"{AGENT}:{agent}"
    made = controller.delegations.add(name, found.id, lasts=lasts, by=by)
    if session.wants_json:
        session.print_document({"schema_version": 1, "delegation": made})
        return
    session.print(_line(made, now=controller.now()))
    session.print(f"Take it back: {session.commands('delegate', 'revoke', made.id)}")


@verb("list")
def list_all(session: Session) -> None:
    """List what is delegated, to whom and until when."""
    controller = session.open_controller() if session.has_store else None
    every = controller.delegations.list() if controller else ()
    if session.wants_json:
        session.print_document({"schema_version": 1, "delegations": every})
    elif controller and every:
        session.print("\n".join(_line(one, now=controller.now()) for one in every))
    else:
        session.print_nothing_found("Nothing is delegated.")


@verb("revoke")
@click.argument("delegation", metavar="ID")
def revoke(session: Session, *, delegation: str) -> None:
    """Revoke a delegation. Decisions made by it stay."""
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    gone = controller.delegations.revoke(delegation, by=by)
    if session.wants_json:
        session.print_document({"schema_version": 1, "revoked": gone})
    else:
        session.print(f"Revoked {gone.id}: {visible(gone.agent)} for task {gone.task}")


def _line(one: Delegation, *, now: int) -> str:
    over = "" if now < one.until else "  (over: it no longer counts)"
    until = stamp(one.until)
    return f"{one.id}  {visible(one.agent)} for task {one.task} until {until}, by {one.by}{over}"


for each in (add, list_all, revoke):
    command.add_command(each)

"""The processes that adjourn starts inside a run: the driver of an agent, and one of its calls."""

import click

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.wiring.drivers import carry_out, drive_run


@bare_verb("_drive")
@click.argument("runner")
def drive(session: Session, *, runner: str) -> int:
    """Drive the agent of this run."""
    del session
    return drive_run(runner)


@bare_verb("_tool")
@click.argument("call")
def tool(session: Session, *, call: str) -> int:
    """Carry out CALL, which was let through."""
    del session
    return carry_out(call)

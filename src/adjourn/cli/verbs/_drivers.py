"""adjourn _agent: the process of the built-in agent, which adjourn itself starts."""

import click

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.wiring.drivers import drive_claude, drive_codex


@bare_verb("_agent")
def agent(session: Session) -> int:
    """Go on with the agent of this run."""
    from adjourn.wiring.drivers import go_on

    del session
    return go_on()


@bare_verb("_claude")
def claude(session: Session) -> int:
    """Drive Claude Code inside a run."""
    del session
    return drive_claude()


@bare_verb("_codex")
def codex(session: Session) -> int:
    """Drive Codex inside a run."""
    del session
    return drive_codex()


@bare_verb("_tool")
@click.argument("call")
def tool(session: Session, *, call: str) -> int:
    """Carry out CALL, which was let through."""
    from adjourn.wiring.drivers import carry_out

    del session
    return carry_out(call)

"""adjourn _tool: the process of one call of the built-in agent, which adjourn itself starts."""

import click

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session


@bare_verb("_tool")
@click.argument("call")
def command(session: Session, *, call: str) -> int:
    """Carry out CALL, which was let through."""
    from adjourn.wiring.agent import carry_out

    del session
    return carry_out(call)

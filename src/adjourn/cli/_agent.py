"""adjourn _agent: the process of the built-in agent, which adjourn itself starts."""

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session


@bare_verb("_agent")
def command(session: Session) -> int:
    """Go on with the agent of this run."""
    from adjourn.wiring.agent import go_on

    del session
    return go_on()

"""adjourn _codex: drive one run of Codex; adjourn itself starts it."""

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.wiring.codex import drive


@bare_verb("_codex")
def command(session: Session) -> int:
    """Drive Codex inside a run."""
    del session
    return drive()

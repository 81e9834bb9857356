"""adjourn _claude: drive one run of Claude Code; adjourn itself starts it."""

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.wiring.claude import drive


@bare_verb("_claude")
def command(session: Session) -> int:
    """Drive Claude Code inside a run."""
    del session
    return drive()

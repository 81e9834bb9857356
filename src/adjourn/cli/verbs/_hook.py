"""adjourn _hook: ask the driver of this run whether a call may be made.

Adjourn itself has Claude Code start it.
"""

import sys

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.core.errors import NotAllowed
from adjourn.core.text.render import block

BLOCKS = 2  # the exit code that always keeps Claude Code from making a call


@bare_verb("_hook")
def command(session: Session) -> int:
    """Print what Claude Code shall do with a call. Whatever goes wrong, it does nothing."""
    del session
    try:
        # Most commands start without it (bench start)
        from adjourn.wiring.drivers import ask_driver

        answer = ask_driver(sys.stdin.buffer.read())
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except NotAllowed as no:
        sys.stderr.write(f"{block(no.sentence)}\n")
        return BLOCKS
    except BaseException as error:  # noqa: BLE001 -- silence is never consent, and neither is a defect
        sys.stderr.write(
            f"Not run: adjourn could not be asked: {block(str(error)) or type(error).__name__}\n"
        )
        return BLOCKS
    return 0

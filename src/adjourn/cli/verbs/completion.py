"""adjourn completion: shell completion."""

import click

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly

_LINES = {
    "bash": 'eval "$(_ADJOURN_COMPLETE=bash_source adjourn)"',
    "zsh": 'eval "$(_ADJOURN_COMPLETE=zsh_source adjourn)"',
    "fish": "_ADJOURN_COMPLETE=fish_source adjourn | source",
}


@bare_verb("completion")
@click.argument("shell", type=click.Choice(list(_LINES)))
def command(session: Session, *, shell: str) -> None:
    """Print the line that turns on completion; put it into your shell's start file."""
    del session
    print_exactly(_LINES[shell])

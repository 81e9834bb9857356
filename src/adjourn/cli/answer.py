"""adjourn answer: answer a question."""

import click

from adjourn.cli.decide import asked, record
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.ask import Reply, Verb


@verb("answer")
@click.argument("ask")
@click.argument("text")
def command(session: Session, *, ask: str, text: str) -> int:
    """Answer ASK with TEXT."""
    return record(session, [Reply(ask_id=found, verb=Verb.ANSWER, text=text) for found in asked(session, Verb.ANSWER, [ask])])

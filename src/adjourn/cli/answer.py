"""adjourn answer: answer a question."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.replies import asked, record
from adjourn.cli.session import Session
from adjourn.core.ask import Reply, Verb


@verb("answer")
@click.argument("ask")
@click.argument("text")
@signable
def command(session: Session, *, ask: str, text: str, **signing: str | None) -> int:
    """Answer ASK with TEXT."""
    replies = [Reply(ask_id=found, verb=Verb.ANSWER, text=text) for found in asked(session, Verb.ANSWER, [ask])]
    return record(session, replies, **signing)

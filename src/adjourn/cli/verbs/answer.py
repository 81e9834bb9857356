"""adjourn answer: answer a question."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import asked, record
from adjourn.core.ask import Reply, Verb
from adjourn.core.errors import Misuse


@verb("answer")
@click.argument("asks", nargs=-1, metavar="ASK...")
@click.argument("text")
@signable
def command(session: Session, *, asks: tuple[str, ...], text: str, **signing: str | None) -> int:
    """Answer questions with TEXT: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    if not asks:  # a single word would be the text
        raise Misuse("say which ask, and then the answer", way_out="adjourn answer --help")
    replies = [
        Reply(ask_id=ask, verb=Verb.ANSWER, text=text) for ask in asked(session, Verb.ANSWER, asks)
    ]
    return record(session, replies, **signing)

"""adjourn answer: answer a question."""

import click

from adjourn.cli.options import ASK_NAME, resuming, signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import ReplyOptions, reply_to
from adjourn.core.ask import Verb
from adjourn.core.errors import Misuse


@verb("answer", prints_whole=True)
@click.argument("asks", nargs=-1, type=ASK_NAME, metavar="ASK...")
@click.argument("text")
@resuming
@signable
def command(
    session: Session,
    *,
    asks: tuple[str, ...],
    text: str,
    sign: str | None,
    save: str | None,
    resume: bool,
) -> int:
    """Answer questions with TEXT: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    if not asks:  # a single word would be the text
        raise Misuse("give the ask, then the answer", way_out="adjourn answer --help")
    return reply_to(
        session, Verb.ANSWER, asks, text, ReplyOptions(sign=sign, save=save, resumes=resume)
    )

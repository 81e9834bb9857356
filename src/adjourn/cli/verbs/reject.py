"""adjourn reject: keep calls from running."""

import click

from adjourn.cli.options import ASK_NAME, resuming, signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import ReplyOptions, reply_to
from adjourn.core.ask import Verb


@verb("reject", prints_whole=True)
@click.argument("asks", nargs=-1, required=True, type=ASK_NAME, metavar="ASK...")
@click.option("--reason", metavar="TEXT", help="Why. The requester is told.")
@resuming
@signable
def command(
    session: Session,
    *,
    asks: tuple[str, ...],
    reason: str | None,
    sign: str | None,
    save: str | None,
    resume: bool,
) -> int:
    """Reject calls: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    return reply_to(
        session, Verb.REJECT, asks, reason, ReplyOptions(sign=sign, save=save, resumes=resume)
    )

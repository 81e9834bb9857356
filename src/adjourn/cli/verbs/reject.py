"""adjourn reject: keep calls from running."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import reply_to
from adjourn.core.ask import Verb


@verb("reject", prints_whole=True)
@click.argument("asks", nargs=-1, required=True, metavar="ASK...")
@click.option("--reason", metavar="TEXT", help="Why; whoever asked is told.")
@signable
def command(
    session: Session,
    *,
    asks: tuple[str, ...],
    reason: str | None,
    sign: str | None,
    save: str | None,
) -> int:
    """Reject calls: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    return reply_to(session, Verb.REJECT, asks, reason, sign=sign, save=save)

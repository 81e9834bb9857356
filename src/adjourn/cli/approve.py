"""adjourn approve: let calls run."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.replies import asked, record
from adjourn.cli.session import Session
from adjourn.core.ask import Reply, Verb


@verb("approve")
@click.argument("asks", nargs=-1, required=True, metavar="ASK...")
@click.option("--value", metavar="V", help="What the command gets as AUTO_APPROVAL (default: approved).")
@signable
def command(session: Session, *, asks: tuple[str, ...], value: str | None, **signing: str | None) -> int:
    """Approve calls: all of them, or none if one cannot be. ASK may be `-`: the ids then come from stdin."""
    replies = [Reply(ask_id=ask, verb=Verb.APPROVE, text=value) for ask in asked(session, Verb.APPROVE, asks)]
    return record(session, replies, **signing)

"""adjourn approve: let calls run."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import reply_to
from adjourn.core.ask import Verb


@verb("approve", prints_whole=True)
@click.argument("asks", nargs=-1, required=True, metavar="ASK...")
@click.option(
    "--value", metavar="V", help="What the command gets as AUTO_APPROVAL (default: approved)."
)
@click.option(
    "--edit",
    is_flag=True,
    help="Change the call in $VISUAL or $EDITOR, then approve what it has become.",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one argument, as in argv.2=staging; repeat it.",
)
@click.option(
    "--override", metavar="REASON", help="Why it runs although the policy says never; for one ASK."
)
@signable
def command(
    session: Session,
    *,
    asks: tuple[str, ...],
    value: str | None,
    edit: bool,
    sets: tuple[str, ...],
    override: str | None,
    sign: str | None,
    save: str | None,
) -> int:
    """Approve calls: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    return reply_to(
        session,
        Verb.APPROVE,
        asks,
        value,
        sign=sign,
        save=save,
        in_editor=edit,
        sets=sets,
        override=override,
    )

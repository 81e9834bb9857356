"""adjourn approve: let calls run."""

import click

from adjourn.cli.options import signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import asked, record
from adjourn.core.ask import Reply, Verb


@verb("approve")
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
@signable
def command(
    session: Session,
    *,
    asks: tuple[str, ...],
    value: str | None,
    edit: bool,
    sets: tuple[str, ...],
    **signing: str | None,
) -> int:
    """Approve calls: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin.
    """
    found = asked(session, Verb.APPROVE, asks)
    if edit or sets:
        from adjourn.cli.verbs._editing import edited_reply

        return record(
            session,
            [edited_reply(session, found, value=value, in_editor=edit, sets=sets)],
            **signing,
        )
    return record(
        session, [Reply(ask_id=ask, verb=Verb.APPROVE, text=value) for ask in found], **signing
    )

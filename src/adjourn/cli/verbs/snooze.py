"""adjourn snooze: hide asks from the inbox for a while."""

import click

from adjourn.cli.options import ASK_NAME, DURATION, MOMENT, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import read_ids
from adjourn.core.ask import expiry_of
from adjourn.core.errors import Misuse
from adjourn.core.text.when import stamp

_LONGEST = 10 * 366 * 86_400_000


@verb("snooze", prints_whole=True)
@click.argument("asks", nargs=-1, required=True, type=ASK_NAME, metavar="ASK...")
@click.option(
    "--for", "length", type=DURATION, metavar="TIME", help="For how long: 90s, 15m, 8h, 2d."
)
@click.option(
    "--until",
    type=MOMENT,
    metavar="MOMENT",
    help="Until when: 2026-11-17T09:00, in local time, or with Z or an offset.",
)
@click.option("--off", is_flag=True, help="Show them again.")
def command(
    session: Session, *, asks: tuple[str, ...], length: int | None, until: int | None, off: bool
) -> int:
    """Hide ASKs from the inbox until a moment.

    It decides nothing, and does not move an expiry.

    ASK may be `-`: the ids then come from stdin. `adjourn inbox --snoozed` lists what is hidden.
    """
    if sum((length is not None, until is not None, off)) != 1:
        raise Misuse("give one of --for, --until and --off", way_out="adjourn snooze --help")
    decisions = session.open_decisions()
    by = session.principal(decisions)
    decisions.authorise(by, "snooze")
    found = [decisions.find_ask(text).id for text in read_ids(asks)]
    moment = decisions.now() + length if length is not None else until
    if moment is not None and moment > decisions.now() + _LONGEST:
        raise Misuse("the limit is ten years", way_out="adjourn snooze --help")
    snoozed = decisions.snooze(found, until=moment, by=by)
    if session.wants_json:
        # Only JSON needs it (bench start)
        from adjourn.wiring.json_documents import snoozed_doc

        session.print_document(snoozed_doc(decisions, snoozed))
        return 0
    for ask in snoozed:
        session.print(
            f"snoozed {ask.id} until {stamp(ask.snoozed_until)}"
            if ask.snoozed_until is not None
            else f"awake {ask.id}"
        )
        end = expiry_of(ask)
        if end is not None and moment is not None and moment >= end:
            session.print(f"  It expires before that, at {stamp(end)}: expired is rejected.")
    return 0

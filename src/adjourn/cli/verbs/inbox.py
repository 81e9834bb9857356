"""adjourn inbox: what waits for a person."""

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.controller.transaction import readable_call
from adjourn.core.errors import Misuse
from adjourn.core.states import TaskState
from adjourn.ports.store import View
from adjourn.views.ask_row import ask_row
from adjourn.views.block import BLANK, Table, unattended_block
from adjourn.wiring import find_unattended

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path; at a terminal no secrets are taken out
    from adjourn.views.paused import PausedTask

_MANY = 20  # queued tasks that are looked at


@verb("inbox")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.option("--after", metavar="ASK", help="Show those that came after this one.")
@click.option("--snoozed", is_flag=True, help="Show those that are snoozed, and until when.")
@click.option("--everywhere", is_flag=True, help="Of all your stores, not only of this one.")
def command(
    session: Session, *, limit: int, after: str | None, snoozed: bool, everywhere: bool
) -> None:
    """List what waits for a person: the open asks of all tasks, oldest first, then paused tasks.

    Asks that are snoozed are left out.
    """
    if everywhere:
        if after:
            raise Misuse("--after belongs to one store", way_out="adjourn inbox --after ASK")
        # Most inboxes are of one store (bench start)
        from adjourn.cli.verbs._everywhere import print_inbox

        print_inbox(session, limit=limit, snoozed=snoozed)
        return
    if not session.has_store:
        if session.wants_json:
            empty: dict[str, object] = {"count": 0, "snoozed": 0, "asks": [], "paused": []}
            session.print_document({"schema_version": 1, **empty})
        else:
            _print(session, [], more=False, asleep=0, snoozed=False)
        return
    decisions = session.open_decisions()
    start = decisions.find_ask(after).id if after else None
    moment = decisions.now()
    with decisions.store.read() as view:
        # One more than is shown tells that there are more; counting them all would cost more than
        # showing these.
        found = (
            view.snoozed_asks(now=moment, limit=limit + 1)
            if snoozed
            else view.open_asks(limit=limit + 1, after=start, awake_at=moment)
        )
        asleep = view.count_snoozed_asks(now=moment)
        if session.wants_json:
            # Only JSON needs them (bench start)
            from adjourn.core.documents import ask_doc, unreadable_doc
            from adjourn.core.kept_documents import WHY
            from adjourn.views.paused import paused_doc, paused_tasks

            docs = [
                ask_doc(ask, readable_call(view, ask), why=WHY.of(ask.id).read(view, ask.task_id))
                for ask in found[:limit]
            ]
            found_paused = paused_tasks(view, limit=limit)
            document = {
                "schema_version": 1,
                "count": view.count_open_asks(),
                "snoozed": asleep,
                "asks": docs,
                "paused": [paused_doc(each, session.commands) for each in found_paused],
                **unreadable_doc(session.unreadable),
            }
            session.print_document(document)
            return
        redactor = session.redactor_of_text if found else None
        rows = [ask_row(view, ask, now=moment, redactor=redactor) for ask in found[:limit]]
        queued = view.tasks(states=(TaskState.QUEUED,), limit=_MANY)
        # Those belong to the whole inbox, below its asks
        paused = [] if snoozed or start else _paused(view, limit)
    if rows or not paused:
        _print(session, rows, more=len(found) > limit, asleep=asleep, snoozed=snoozed)
    if paused:
        # Most inboxes have none (bench start)
        from adjourn.views.paused import paused_blocks

        if redactor := session.redactor_of_text:
            paused = [
                msgspec.structs.replace(each, task=redactor.task(each.task)) for each in paused
            ]
        between = [BLANK] if rows else []
        session.show([*between, *paused_blocks(paused, session.commands, now=moment)])
    if stuck := find_unattended(session.root, queued, now=moment):
        session.show([BLANK, unattended_block(stuck, session.commands)])


def _paused(view: View, limit: int) -> "list[PausedTask]":
    if not view.tasks(states=(TaskState.PAUSED,), limit=1):
        return []
    # Most inboxes have no such task (bench start)
    from adjourn.views.paused import paused_tasks

    return paused_tasks(view, limit=limit)


def _print(
    session: Session,
    rows: list[tuple[str, str, str, str, str]],
    *,
    more: bool,
    asleep: int,
    snoozed: bool,
) -> None:
    if rows:
        head = ("ASK", "KIND", "TASK", "BACK" if snoozed else "SINCE", "WHAT")
        session.show([Table(head=head, rows=rows, state_column=1)])
    else:
        session.print_nothing_found("Nothing is snoozed." if snoozed else "Nothing waits for you.")
    if more:
        words = (
            ("--snoozed", "--limit", str(2 * len(rows))) if snoozed else ("--after", rows[-1][0])
        )
        session.print(f"\nThere are more: {session.commands('inbox', *words)}")
    if asleep and not snoozed:
        session.print(f"\n{asleep:,} snoozed: {session.commands('inbox', '--snoozed')}")

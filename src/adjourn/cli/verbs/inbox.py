"""adjourn inbox: what waits for a person."""

import os
import sys
from typing import TypedDict, Unpack

import click
import msgspec

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.controller.transaction import readable_call
from adjourn.core import exits
from adjourn.core.ask import ApprovalAsk, Ask
from adjourn.core.errors import Misuse
from adjourn.core.states import TaskState
from adjourn.ports.store import View
from adjourn.views.ask_row import ask_row
from adjourn.views.block import BLANK, Table, unattended_block
from adjourn.wiring import find_unattended

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path; at a terminal no secrets are taken out
    from adjourn.views.paused import PausedTask

_LATER = 60_000  # milliseconds: what was just decided is named, too
_MANY = 20  # queued tasks that are looked at


class Given(TypedDict):
    """Which asks, and what to do with them."""

    snoozed: bool
    everywhere: bool
    interactive: bool
    kind: str | None
    task: str | None
    mine: bool
    ids: bool


@verb("inbox")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.option("--after", metavar="ASK", help="Show the asks after this one.")
@click.option("--snoozed", is_flag=True, help="Show snoozed asks, and until when.")
@click.option("--everywhere", is_flag=True, help="From all your stores, not only this one.")
@click.option("-i", "--interactive", is_flag=True, help="Settle them here, one after the other.")
@click.option(
    "--kind", type=click.Choice(["approval", "question", "uncertain"]), help="Only these."
)
@click.option("--task", type=TASK_NAME, metavar="ID", help="Only what this task asks.")
@click.option("--mine", is_flag=True, help="Only asks of tasks that you started.")
@click.option("--ids", is_flag=True, help="Print only the ids of the asks, whole, one a line.")
def command(session: Session, *, limit: int, after: str | None, **given: Unpack[Given]) -> int:
    """List what waits for a person: the open asks of all tasks, oldest first, then paused tasks.

    Asks that are snoozed are left out.
    """
    snoozed = given["snoozed"]
    is_filtered = bool(given["kind"] or given["task"] or given["mine"])
    if given["everywhere"]:
        if after or is_filtered or given["interactive"] or given["ids"]:
            raise Misuse(
                "--everywhere goes with --limit and --snoozed only",
                way_out="adjourn inbox --everywhere",
            )
        # Most inboxes are of one store (bench start)
        from adjourn.cli.verbs._everywhere import print_inbox

        print_inbox(session, limit=limit, snoozed=snoozed)
        return exits.COMPLETED
    session.require_named_store()
    if not session.has_store:
        if session.wants_json:
            empty: dict[str, object] = {"count": 0, "snoozed": 0, "asks": [], "paused": []}
            session.print_document({"schema_version": 1, **empty})
        else:
            _print(session, [], more=False, asleep=0, given=given)
        return exits.COMPLETED
    decisions = session.open_decisions()
    if given["task"]:
        given["task"] = decisions.find_task(given["task"]).id
    start = decisions.find_ask(after).id if after else None
    moment = decisions.now()
    with decisions.store.read() as view:
        # One more than is shown tells that there are more; counting them all would cost more than
        # showing these.
        if is_filtered:
            from adjourn.wiring.json_documents import filtered_asks  # most inboxes are whole

            found = filtered_asks(
                view,
                now=moment,
                kind=given["kind"],
                task=given["task"],
                requester=session.principal(decisions).name if given["mine"] else None,
                limit=limit + 1,
                after=start,
            )
        elif snoozed:
            found = view.snoozed_asks(now=moment, limit=limit + 1)
        else:
            found = view.open_asks(limit=limit + 1, after=start, awake_at=moment)
        asleep = view.count_snoozed_asks(now=moment)
        if given["ids"]:
            if found:
                session.print("\n".join(ask.id for ask in found[:limit]))
            return exits.COMPLETED
        if session.wants_json:
            # Only JSON needs them (bench start)
            from adjourn.wiring.json_documents import inbox_doc

            document = inbox_doc(
                view,
                found[:limit],
                snoozed=asleep,
                limit=limit,
                commands=session.commands,
            )
            session.print_document(document)
            return exits.COMPLETED
        redactor = session.redactor_of_text if found else None
    if given["interactive"]:
        return _settle(session, [ask.id for ask in found[:limit]])
    with decisions.store.read() as view:
        at_terminal = sys.stdout.isatty()  # scripts wait for each query (bench start)
        rows = [
            ask_row(
                view,
                ask,
                now=moment,
                redactor=redactor,
                full_ids=session.full_ids,
                checks_names=at_terminal,
            )
            for ask in found[:limit]
        ]
        queued = view.tasks(states=(TaskState.QUEUED,), limit=_MANY)
        # Those belong to the whole inbox, below its asks
        paused = [] if snoozed or start or is_filtered else _paused(view, limit)
        if sys.stdout.isatty():
            shown = [(ask.id, _digest(view, ask)) for ask in found[:limit]]
            shown += [(each.task.id, None) for each in paused]
            _keep_rows(session, shown)
    if rows or not paused:
        _print(session, rows, more=len(found) > limit, asleep=asleep, given=given)
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
    return exits.COMPLETED


def _settle(session: Session, ask_ids: list[str]) -> int:
    """Have a person settle asks at this terminal."""
    # Only at a terminal, and only if it is wanted (bench start)
    from adjourn.cli.verbs._settling import can_settle_here, settle_asks

    controller = session.open_controller()
    if not can_settle_here(session, session.principal(controller.decisions)):
        raise Misuse("inbox -i needs a person at a terminal", way_out="adjourn inbox")
    if not ask_ids:
        session.print_nothing_found("Nothing waits for you.")
        return exits.COMPLETED
    is_done = settle_asks(session, controller, ask_ids)
    with controller.store.read() as view:
        rest = view.count_open_asks()
        queued = view.tasks(states=(TaskState.QUEUED,), limit=_MANY)
    left = "Nothing else waits." if not rest else f"{rest} left: {session.commands('inbox', '-i')}"
    session.print(left)
    if stuck := find_unattended(session.root, queued, now=controller.now() + _LATER):
        session.show([unattended_block(stuck, session.commands)])
    return exits.COMPLETED if is_done and not rest else exits.PAUSED


def _digest(view: View, ask: Ask) -> str | None:
    call = readable_call(view, ask) if isinstance(ask, ApprovalAsk) else None
    return call.digest if call else None


def _keep_rows(session: Session, named: list[tuple[str, str | None]]) -> None:
    # Only at a terminal (bench start)
    from adjourn.cli.named_rows import NamedRow, keep_rows

    store = os.path.realpath(session.root)
    keep_rows([NamedRow(store=store, id=name, digest=digest) for name, digest in named])


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
    given: Given,
) -> None:
    snoozed = given["snoozed"]
    if rows:
        head = ("ASK", "KIND", "TASK", "BACK" if snoozed else "SINCE", "WHAT")
        session.show([Table(head=head, rows=rows, state_column=1)])
    else:
        session.print_nothing_found("Nothing is snoozed." if snoozed else "Nothing waits for you.")
    if more:
        words: tuple[str, ...] = (
            ("--snoozed", "--limit", str(2 * len(rows))) if snoozed else ("--after", rows[-1][0])
        )
        for option, value in (("--kind", given["kind"]), ("--task", given["task"])):
            words = (*words, option, value) if value else words
        words = (*words, "--mine") if given["mine"] else words
        session.print(f"\nThere are more: {session.commands('inbox', *words)}")
    if asleep and not snoozed:
        session.print(f"\n{asleep:,} snoozed: {session.commands('inbox', '--snoozed')}")

"""adjourn inbox: what waits for a person."""

from typing import assert_never

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.controller.transaction import call_asked_about
from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, UncertainAsk
from adjourn.core.call import COMMAND, Call, require_readable
from adjourn.core.errors import UnreadableRow
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import clipped, prose, title
from adjourn.core.text.when import ago, span
from adjourn.ports.store import View
from adjourn.views.block import BLANK, Table, unattended_block
from adjourn.views.call import GIST, gist, short
from adjourn.wiring import find_unattended

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path; at a terminal no secrets are taken out
    from adjourn.core.redact import Redactor
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
def command(session: Session, *, limit: int, after: str | None, snoozed: bool) -> None:
    """List what waits for a person: the open asks of all tasks, oldest first, then paused tasks.

    Asks that are snoozed are left out.
    """
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
            from adjourn.views.paused import paused_doc

            docs = [
                ask_doc(ask, _call_of(view, ask), why=WHY.of(ask.id).read(view, ask.task_id))
                for ask in found[:limit]
            ]
            found_paused = _paused(view, limit)
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
        rows = [_row(view, ask, moment, redactor) for ask in found[:limit]]
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
    """Return the tasks that are paused, with what their last runs said, newest first."""
    tasks = view.tasks(states=(TaskState.PAUSED,), limit=limit)
    if not tasks:
        return []
    # Most inboxes have no such task (bench start)
    from adjourn.core.kept_documents import REPORT
    from adjourn.views.paused import PausedTask

    found: list[PausedTask] = []
    for task in tasks:
        try:
            run = view.run(task.id, task.runs) if task.runs else None
            report = REPORT.of(task.runs).read(view, task.id) if task.spec.is_driven else None
        except UnreadableRow as error:
            error.note_in(view.unreadable)
        else:
            found.append(PausedTask(task=task, run=run, report=report))
    return found


def _call_of(view: View, ask: Ask) -> Call | None:
    try:
        call = call_asked_about(view, ask)
        if call:
            require_readable(call)
    except UnreadableRow as error:
        error.note_in(view.unreadable)
        return None
    return call


def _row(
    view: View, ask: Ask, moment: int, redactor: "Redactor | None"
) -> tuple[str, str, str, str, str]:
    until = ask.snoozed_until
    when = ago(ask.created_at, now=moment)
    if until is not None and until > moment:
        when = f"in {span(until - moment)}"
    try:
        what = _gist(view, ask, view.task(ask.task_id), redactor)
        if redactor:
            from adjourn.core.redact import plainly  # only where nobody looks

            what = plainly(what)
    except UnreadableRow as error:
        error.note_in(view.unreadable)
        what = f"({error.kind} cannot be read)"
    return (short(ask.id), ask.kind, short(ask.task_id), when, what)


def _gist(view: View, ask: Ask, task: Task, redactor: "Redactor | None") -> str:
    """Return the question, the call of an agent, or the command that waits for a start."""
    if redactor:
        ask, task = redactor.ask(ask), redactor.task(task)
    match ask:
        case QuestionAsk():
            return clipped(prose(ask.prompt), columns=GIST)
        case UncertainAsk() if task.spec.is_driven:
            return clipped(prose(ask.prompt), columns=GIST)
        case UncertainAsk():
            return title(task.spec, columns=GIST)
        case ApprovalAsk():
            call = view.call(task.id, ask.call) if task.spec.is_driven else None
            if call and redactor:
                call = redactor.call(call)
            what = gist(call) if call and call.tool != COMMAND else title(task.spec, columns=GIST)
            return f"never: {what}" if ask.terms.override else what
        case _:
            assert_never(ask)


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

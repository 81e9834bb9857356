"""adjourn audit: verify the audit trail, or export it."""

import sys
from collections.abc import Iterator

import click
import msgspec

from adjourn.cli.options import SINCE, verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly
from adjourn.core import exits
from adjourn.core.documents import event_doc
from adjourn.core.errors import UnreadableRow
from adjourn.core.text.render import prose, visible
from adjourn.core.text.when import stamp
from adjourn.core.trail.audit import COLUMNS, Auditor, AuditVerdict, harmless
from adjourn.core.trail.events import Sealed
from adjourn.ports.store import View

_PAGE = 2_000
_TASKS = 500


@click.group("audit", no_args_is_help=False)
def command() -> None:
    """Verify the audit trail, or export it."""


# --- verify ---------------------------------------------------------------------------------------


@verb("verify")
@click.option(
    "--receipt",
    "receipts",
    multiple=True,
    metavar="PLACE:SEAL",
    help="A receipt that you kept; the trail must have it.",
)
def verify(session: Session, *, receipts: tuple[str, ...]) -> int:
    """Check that the trail is the one that was written: exit code 0, or 1 and the first break.

    Every event follows from all before it, every task and every reply matches the trail, and
    every receipt is found. A program that can write to the store can replace the whole trail. A
    receipt that was kept elsewhere shows that, too.
    """
    # The trail holds no words of a task but its name, and must be told as it is
    session.is_copy = False
    auditor = Auditor(receipts)
    with session.open_controller().store.read() as view:
        _read(session, auditor, view)
    verdict = auditor.verdict()
    if session.wants_json:
        session.print_document(
            {
                "schema_version": 1,
                "outcome": "whole" if verdict.is_whole else "broken",
                "audit": verdict,
            }
        )
    else:
        session.print("\n".join(_told(verdict)))
    return exits.COMPLETED if verdict.is_whole else exits.FAILED


def _read(session: Session, auditor: Auditor, view: View) -> None:
    total, _ = view.trail_head()
    for rows in _pages(view):
        if not auditor.read(rows):
            return
        _progress(session, rows[-1].place, total)
    before: str | None = None
    while page := view.tasks(limit=_TASKS, before=before):
        for task in page:
            try:
                head, asks = view.chain_head(task.id), view.asks(task.id)
            except UnreadableRow as error:
                error.note_in(view.unreadable)
                continue
            if not auditor.compare(task.id, head=head, asks=asks):
                return
        before = page[-1].id
    for unreadable in view.unreadable.values():
        auditor.miss(unreadable.sentence)


def _pages(view: View) -> Iterator[list[Sealed]]:
    place = 0
    while rows := view.trail(after=place, limit=_PAGE):
        yield rows
        place = rows[-1].place


def _progress(session: Session, place: int, total: int) -> None:
    """Show how far it is, on a terminal only."""
    if sys.stderr.isatty() and not session.wants_json and total > _PAGE:
        sys.stderr.write(
            f"\r{place:,} of {total:,} events\x1b[K" + ("\r\x1b[K" if place >= total else "")
        )
        sys.stderr.flush()


def _told(verdict: AuditVerdict) -> Iterator[str]:
    broken = verdict.broken
    if broken and broken.place:
        kind, task = prose(broken.kind or "unreadable"), visible(broken.task_id or "unknown")
        what = f" ({kind} of task {task})"
        yield f"Broken at event {broken.place:,}{what}: {broken.why}."
    elif broken and broken.task_id is None:
        yield f"Broken: {prose(broken.why)}."
    elif broken:
        yield f"Broken: of task {visible(broken.task_id or 'unknown')}: {broken.why}."
    else:
        pruned = f", {verdict.forgotten:,} of them pruned" if verdict.forgotten else ""
        yield f"Whole: {verdict.events:,} events{pruned}, up to {verdict.head}"
    for each in verdict.receipts:
        missing = "not found: it is not from this trail"
        yield f"receipt {each.receipt} {'holds' if each.holds else missing}"


# --- export ---------------------------------------------------------------------------------------


@verb("export")
@click.argument("task", required=False, metavar="[TASK]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--since", type=SINCE, metavar="WHEN", help="Only what happened since: 8h, 2d, 2026-01-31."
)
def export(session: Session, *, task: str | None, form: str, since: int | None) -> None:
    """Print the trail, one event per line, oldest first: of all tasks, or of TASK alone.

    Of a pruned event only its place, link and seal are left. JSON lines hold every value exactly,
    in ASCII. In CSV what cannot be seen is spelled out, and a cell that a spreadsheet would take
    for a formula begins with an apostrophe.
    """
    session.is_copy = False
    controller = session.open_controller()
    only = controller.decisions.find_task(task).id if task else None
    with controller.store.read() as view:
        rows = (
            row for page in _pages(view) for row in page if _is_wanted(row, only=only, since=since)
        )
        if session.wants_json:
            session.print_document(
                {"schema_version": 1, "events": [event_doc(row) for row in rows]}
            )
        elif form == "csv":
            _write_csv(rows)
        else:
            _write_lines(rows)


def _is_wanted(row: Sealed, *, only: str | None, since: int | None) -> bool:
    if row.event is None:
        return only is None and since is None
    return only in {None, row.event.task_id} and (since is None or row.event.at >= since)


def _write_lines(rows: Iterator[Sealed]) -> None:
    # Unlike our own, it can keep to ASCII: no byte of a line moves a cursor or ends the line
    import json

    for row in rows:
        document = msgspec.to_builtins(event_doc(row))
        print_exactly(json.dumps(document, separators=(",", ":")))


def _write_csv(rows: Iterator[Sealed]) -> None:
    # Slow to import, and seldom needed
    import csv

    # Slow to import, and seldom needed
    import io

    line = io.StringIO()
    writer = csv.writer(line, lineterminator="")
    for cells in (COLUMNS, *map(_cells, rows)):
        writer.writerow([harmless(cell) for cell in cells])
        print_exactly(line.getvalue())
        line.seek(0)
        line.truncate()


def _cells(row: Sealed) -> tuple[str, ...]:
    event = row.event
    if event is None:
        return (str(row.place), "", "", "", "", "", "", row.seal.hex())
    facts = ", ".join(f"{name} {fact}" for name, fact in event.facts.items() if name != "level")
    words = (event.task_id, event.kind, event.by, str(event.facts.get("level") or ""), facts)
    return (str(row.place), stamp(event.at), *map(visible, words), row.seal.hex())


command.add_command(verify)
command.add_command(export)

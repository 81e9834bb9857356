"""adjourn tasks: list tasks."""

import os
import sys

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.errors import Misuse
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import title
from adjourn.core.text.when import ago
from adjourn.views.block import BLANK, Table, unattended_block
from adjourn.views.call import GIST, unique_name, unmade_words
from adjourn.wiring import find_unattended
from adjourn.wiring.json_documents import count_unmade, tasks_doc


@verb("tasks")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in TaskState]),
    help="Only these; repeat it.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.option("--before", metavar="ID", help="Show tasks older than this one.")
@click.option("--everywhere", is_flag=True, help="From all your stores, not only this one.")
def command(
    session: Session, *, states: tuple[str, ...], limit: int, before: str | None, everywhere: bool
) -> None:
    """List tasks, newest first."""
    if everywhere:
        if before:
            raise Misuse("--before belongs to one store", way_out="adjourn tasks --before ID")
        # Most lists are of one store (bench start)
        from adjourn.cli.verbs._everywhere import print_tasks

        print_tasks(session, states=tuple(map(TaskState, states)), limit=limit)
        return
    session.require_named_store()
    decisions = session.open_decisions() if session.has_store else None
    found: list[Task] = []
    names: dict[str, str] = {}  # what each is called in the table
    unmade: dict[str, int] = {}  # how many approved calls of agents were never made
    if decisions:
        start = decisions.find_task(before).id if before else None
        with decisions.store.read() as view:
            wanted = tuple(TaskState(state) for state in states)
            found = view.tasks(states=wanted, limit=limit, before=start)
            unmade = count_unmade(view, found)
            if not session.wants_json:
                names = {
                    task.id: task.id if session.full_ids else unique_name(view.tasks_like, task.id)
                    for task in found
                }
    if session.wants_json:
        session.print_document(tasks_doc(found, unmade, session.unreadable))
        return
    if not (decisions and found):
        session.print_nothing_found("No tasks.")
        return
    moment = decisions.now()
    rows: list[tuple[str, ...]] = []
    redactor = session.redactor_of_text
    for task in found:
        what = title(task.spec, columns=GIST)
        if redactor:
            from adjourn.core.redact import plainly  # only where nobody looks

            what = plainly(title(redactor.task(task).spec, columns=GIST))
        if count := unmade.get(task.id):
            what = f"{unmade_words(count)}: {what}"
        changed = ago(task.updated_at, now=moment)
        rows.append((names[task.id], task.state, str(task.runs), changed, what))
    if sys.stdout.isatty():
        # Only at a terminal (bench start)
        from adjourn.cli.named_rows import NamedRow, keep_rows

        store = os.path.realpath(session.root)
        keep_rows([NamedRow(store=store, id=task.id) for task in found])
    head = ("TASK", "STATE", "RUNS", "CHANGED", "WHAT")
    session.show([Table(head=head, rows=rows, state_column=1)])
    if stuck := find_unattended(session.root, found, now=moment):
        session.show([BLANK, unattended_block(stuck, session.commands)])
    if len(found) == limit:
        only = [word for state in states for word in ("--state", state)]
        session.print(
            f"\nolder: {session.commands('tasks', *only, '--before', names[found[-1].id])}"
        )

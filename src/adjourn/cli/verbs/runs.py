"""adjourn runs: list the runs of a task."""

import click

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.core.agent.calls import Spent
from adjourn.core.documents import RunDoc
from adjourn.core.task import Run
from adjourn.core.text.render import prose
from adjourn.core.text.when import ago, span
from adjourn.core.trail.durations import run_ends, time_spent, time_words
from adjourn.views.agent import usage_words
from adjourn.views.block import Table
from adjourn.wiring.json_documents import runs_doc


@verb("runs")
@click.argument("task", type=TASK_NAME, metavar="ID")
def command(session: Session, *, task: str) -> None:
    """List the runs of a task, oldest first, with how each came from another."""
    controller = session.open_controller()
    found = controller.decisions.find_task(task)
    with controller.store.read() as view:
        runs = view.runs(found.id)
        if redactor := None if session.wants_json else session.redactor_of_text:
            runs = [redactor.run(run) for run in runs]
        events = view.events(found.id)
        ends = run_ends(events)
        document = runs_doc(view, found, runs)
    if session.wants_json:
        session.print_document(document)
        return
    if not runs:
        session.print(f"Task {found.id} has not run yet.")
        return
    moment = controller.now()
    head = ("RUN", "STATE", "STARTED", "TOOK", "EXIT", "RESUMABLE", "NOTE")
    rows = [
        _row(run, doc, ended=ends.get(run.number, moment), moment=moment)
        for run, doc in zip(runs, document.runs, strict=True)
    ]
    session.show([Table(head=head, rows=rows, state_column=1)])
    session.print(f"\nIn all: {time_words(time_spent(events), now=moment)}")


def _row(run: Run, doc: RunDoc, *, ended: int, moment: int) -> tuple[str, ...]:
    ending = (
        f"signal {run.signal}"
        if run.signal
        else ""
        if run.exit_code is None
        else str(run.exit_code)
    )
    took = span(ended - run.created_at)
    can = "yes" if doc.resumable else "no"
    return (
        str(run.number),
        run.state,
        ago(run.created_at, now=moment),
        took,
        ending,
        can,
        _note(run, doc.usage),
    )


def _note(run: Run, usage: Spent | None) -> str:
    notes = [run.pause_reason.replace("_", " ") if run.pause_reason else ""]
    notes += [f"{word} run {number}" for word, number in _kin(run) if number]
    notes += [usage_words(usage)] if usage else []
    return ", ".join(note for note in [*notes, prose(run.message or "")[:200]] if note)


def _kin(run: Run) -> list[tuple[str, int | None]]:
    return [
        ("resumed from", run.resumed_from),
        ("restart of", run.restart_of),
        ("superseded by", run.superseded_by),
    ]

"""adjourn runs: list the runs of a task."""

import click

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.core.agent.calls import Spent
from adjourn.core.documents import RunDoc
from adjourn.core.states import TaskState
from adjourn.core.task import Run, RunState, Task
from adjourn.core.text.render import prose
from adjourn.core.text.when import ago, span
from adjourn.core.trail.durations import run_ends, time_spent, time_words
from adjourn.views.agent import usage_words
from adjourn.views.block import Table
from adjourn.wiring.json_documents import runs_doc

_UNENDED = frozenset({RunState.WAITING, RunState.PAUSED})


@verb("runs")
@click.argument("task", type=TASK_NAME, metavar="ID")
def command(session: Session, *, task: str) -> None:
    """List the runs of a task, oldest first, and how each run started."""
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
    resumed = {run.resumed_from for run in runs}
    rows = [
        _row(
            run,
            doc,
            ended=ends.get(run.number, moment),
            moment=moment,
            task=found,
            is_resumed=run.number in resumed,
        )
        for run, doc in zip(runs, document.runs, strict=True)
    ]
    session.show([Table(head=head, rows=rows, state_column=1)])
    session.print(f"\nIn all: {time_words(time_spent(events), now=moment)}")


def _row(
    run: Run, doc: RunDoc, *, ended: int, moment: int, task: Task, is_resumed: bool
) -> tuple[str, ...]:
    """Return a run as a row; how one stands that is not the newest is a matter of the past."""
    ending = (
        f"signal {run.signal}"
        if run.signal
        else ""
        if run.exit_code is None
        else str(run.exit_code)
    )
    took = span(ended - run.created_at)
    is_newest = run.number == task.runs
    can = "yes" if doc.resumable else "resumed" if is_resumed else "no" if is_newest else ""
    # A canceled task has no run that waits
    is_canceled = is_newest and task.state is TaskState.CANCELED and run.state in _UNENDED
    state = RunState.CANCELED if is_canceled else run.state
    return (
        str(run.number),
        state,
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

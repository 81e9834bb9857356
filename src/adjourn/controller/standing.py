"""How far an agent's conversation had come at each checkpoint."""

from adjourn.controller.transaction import (
    ADJOURN,
    ASKED,
    Transaction,
    approval_of,
    children_left_open,
)
from adjourn.core.agent.calls import Report, Spent
from adjourn.core.errors import Misuse, NotFound
from adjourn.core.kept_documents import BEGAN, REACHED, REPORT, UNTOLD
from adjourn.core.outcome import Standing
from adjourn.core.states import ENDED
from adjourn.core.task import Run, Task
from adjourn.core.text.render import prose, visible
from adjourn.core.text.when import stamp
from adjourn.ports.store import View

_RECENT = 100  # events of a task among which the start of its newest run is looked for


def session_start(view: View, task: Task) -> int:
    """Return how many messages were there before the task's session began."""
    return BEGAN.read(view, task.id) or 0


def note_reach(tx: Transaction, task: Task, run: Run) -> None:
    """Write down how many messages there are when a run ends, and where its session began."""
    reach = session_start(tx.rows, task), tx.rows.count_messages(task.id)
    REACHED.of(run.number).keep(tx.rows, task.id, reach)


def begin_anew(tx: Transaction, task: Task) -> None:
    """Write down that all messages so far belong to sessions before a restart."""
    if messages := tx.rows.count_messages(task.id):
        BEGAN.keep(tx.rows, task.id, messages)


def reach_of(view: View, task: Task, at: str | None) -> tuple[int, int]:
    """Return which messages belong to a checkpoint.

    Those after the first number, up to the second.
    """
    if not view.count_messages(task.id):
        sentence = (
            f"task {task.id} has no conversation: only a task of the built-in agent can be forked"
        )
        raise Misuse(sentence, way_out="adjourn tasks")
    if at is None:
        return session_start(view, task), view.count_messages(task.id)
    runs = [
        run for run in view.runs(task.id) if run.checkpoint_id and run.checkpoint_id.startswith(at)
    ]
    reach = REACHED.of(runs[0].number).read(view, task.id) if len(runs) == 1 and at else None
    if reach is None:
        raise NotFound(
            f"task {task.id} has no checkpoint {visible(at)}", way_out=f"adjourn runs {task.id}"
        )
    return reach


def standing_of(view: View, task: Task, run: Run) -> Standing:
    """Return what the store knows of a run at the moment it ends."""
    turns = view.turns_left_open(run.id)
    asks = [view.ask(turn.thing) for turn in turns if turn.key.startswith(ASKED)]
    children = children_left_open(view, run.id)
    call = view.call(task.id, run.call)
    approval = approval_of(view, call)
    return Standing(
        open_asks=tuple(ask.id for ask in asks if ask.is_open),
        settled_asks=any(not ask.is_open for ask in asks),
        untold_asks=task.spec.is_driven and bool(UNTOLD.read(view, task.id)),
        open_children=tuple(child.id for child in children if child.state not in ENDED),
        ended_children=any(child.state in ENDED for child in children),
        asks_by_exit_code=task.spec.asks_by_exit_code,
        was_approved=approval is not None and not approval.gate,
        approved_manifest=approval.manifest if approval else None,
        told=_told(view, run) if task.spec.is_driven else None,
        resumable=run.resumable,
    )


def who_was_first(view: View, task: Task) -> str:
    """Return who had the task's newest run start, and when, as the end of a sentence."""
    for happened in view.last_events(task.id, limit=_RECENT):
        event = happened.event
        if event.kind == "run_claimed" and event.facts.get("run") == task.runs:
            who = "a worker" if event.by == ADJOURN else prose(event.by)
            return f"; {who} was first, at {stamp(event.at)}, with run {task.id}.{task.runs}"
    return ""


def report_of(view: View, run: Run) -> Report | None:
    """Return what the run of an agent says of itself."""
    return REPORT.of(run.number).read(view, run.task_id)


def spent_before(view: View, run: Run) -> Spent:
    """Return what the runs of a task took before this one, as the newest of them reports it."""
    for number in range(run.number - 1, 0, -1):
        if report := REPORT.of(number).read(view, run.task_id):
            return report.task or report.spent
    return Spent()


def _told(view: View, run: Run) -> str | None:
    report = report_of(view, run)
    return report.message if report else None

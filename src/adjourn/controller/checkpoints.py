"""How far an agent's conversation had come at each checkpoint."""

from adjourn.controller.steps import Steps
from adjourn.core.errors import Misuse, NotFound
from adjourn.core.render import visible
from adjourn.core.task import Run, Task
from adjourn.core.transcript import BEGAN, REACHED
from adjourn.ports.store import View


def note_reach(step: Steps, task: Task, run: Run) -> None:
    """Write down how many messages there are when a run ends, and where its session began."""
    began = int(step.tx.document(task.id, BEGAN) or 0)
    reached = f"{began} {step.tx.count_messages(task.id)}"
    step.tx.keep_document(task.id, f"{REACHED}{run.number}", reached.encode())


def begin_anew(step: Steps, task: Task) -> None:
    """Write down that all messages so far belong to sessions before a restart."""
    if messages := step.tx.count_messages(task.id):
        step.tx.keep_document(task.id, BEGAN, str(messages).encode())


def reach_of(view: View, task: Task, at: str | None) -> tuple[int, int]:
    """Return which messages belong to a checkpoint: those after the first number, up to the second."""
    if not view.count_messages(task.id):
        sentence = f"task {task.id} has no conversation: only a task of the built-in agent can be forked"
        raise Misuse(sentence, way_out="adjourn tasks")
    if at is None:
        return int(view.document(task.id, BEGAN) or 0), view.count_messages(task.id)
    runs = [run for run in view.runs(task.id) if run.checkpoint_id and run.checkpoint_id.startswith(at)]
    kept = view.document(task.id, f"{REACHED}{runs[0].number}") if len(runs) == 1 and at else None
    if kept is None:
        raise NotFound(f"task {task.id} has no checkpoint {visible(at)}", way_out=f"adjourn runs {task.id}")
    began, reached = kept.split()
    return int(began), int(reached)

"""What an agent is told of what it left open when its run ended."""

from adjourn.controller.transaction import LEFT, Transaction, children_left_open
from adjourn.core.ask import is_review
from adjourn.core.kept_documents import FOLLOW_UPS
from adjourn.core.resumption import TASKS_ENDED, FollowUp
from adjourn.core.states import ENDED, AskState, TaskState
from adjourn.core.task import Run, Task
from adjourn.core.text.render import title
from adjourn.ports.store import Turn

_COLUMNS = 120


def tell_what_was_left_open(tx: Transaction, task: Task, run: Run, *, after: str) -> None:
    """Have a new run of an agent told what came of the tasks that the run before left open.

    A task that is not done yet stays open in the new run.
    """
    ended: list[Task] = []
    for child in children_left_open(tx.rows, after):
        if child.state in ENDED:
            ended.append(child)
        else:
            key = f"{LEFT}{child.id}"
            tx.rows.add_turn(Turn(run_id=run.id, key=key, thing=child.id, left_open=True))
    if ended:
        add_follow_up(tx, task, "\n".join([TASKS_ENDED, "", *map(_how_it_ended, ended)]))


def add_follow_up(tx: Transaction, task: Task, text: str) -> None:
    """Add to what an agent that had left is told when it goes on, behind the reviews so far."""
    from adjourn.core.review import feedback_of  # seldom needed, and resuming is a hot path

    wishes = [
        ask
        for ask in (tx.rows.asks(task.id) if task.spec.review else ())
        if is_review(ask) and ask.state is AskState.ANSWERED and feedback_of(ask.reply)
    ]
    earlier = FOLLOW_UPS.read(tx.rows, task.id) or []
    FOLLOW_UPS.keep(tx.rows, task.id, [*earlier, FollowUp(text=text, reviews=len(wishes))])


def _how_it_ended(child: Task) -> str:
    ending = "has completed" if child.state is TaskState.SUCCEEDED else f"has {child.state}"
    if child.state is TaskState.CANCELED:
        ending = "was canceled"
    words = f": {child.message}" if child.message else ""
    what = title(child.spec, columns=_COLUMNS)
    return f"- task {child.id} ({what}), which was not done when you left, {ending}{words}"

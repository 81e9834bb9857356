"""Says on stderr where decisions are sealed that a verb recorded on its way to something else."""

from adjourn.cli.session import Session
from adjourn.controller.whole import Controller
from adjourn.core.render import visible
from adjourn.core.task import Task


def say_receipts(session: Session, controller: Controller, task: Task) -> None:
    """Print a receipt for each settled ask of a task's run, as the task stood when they were settled."""
    with controller.store.read() as view:
        settled = [ask for ask in view.asks_of_run(task.id, task.runs) if ask.level]
    for receipt in controller.receipts(settled):
        session.warn(f"receipt {receipt.token} {receipt.level} by {visible(receipt.by)}")

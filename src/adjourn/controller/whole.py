"""The whole controller: the only place where a task changes."""

from adjourn.controller import histories
from adjourn.controller.asking import Asking
from adjourn.controller.driving import Driving
from adjourn.controller.plans import Plans
from adjourn.controller.signing import Signing
from adjourn.controller.standing import report_of, standing_of
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState


class Controller(Plans, Asking, Driving, Signing):
    """Applies the rules. Every surface and every supervisor calls it; nothing else writes to the store."""

    def scene(self, task_id: str) -> Scene:
        """Return a task with its last run and the asks of it, as of one moment."""
        with self._store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.runs else None
            asks = tuple(view.asks_of_run(task_id, task.runs))
            calls = {ask.call: view.call(task_id, ask.call) for ask in asks if ask.call}
            children = standing_of(view, task, run).open_children if run and task.state is TaskState.WAITING else ()
            report = report_of(view, run) if run and task.spec.is_driven else None
            told = histories.of_asks(view, task, asks, calls)
            return Scene(task=task, run=run, asks=asks, calls=calls, waiting_on=children, report=report, **told)

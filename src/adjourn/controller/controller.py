"""The whole controller: the only place where a task changes."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from adjourn.controller.agents import Agents
from adjourn.controller.asks import Asks
from adjourn.controller.context import Context
from adjourn.controller.decisions import Decisions
from adjourn.controller.documents import Documents
from adjourn.controller.plans import Plans
from adjourn.controller.runs import Runs
from adjourn.controller.signing import Signing
from adjourn.controller.standing import report_of, standing_of
from adjourn.controller.tasks import Tasks
from adjourn.core.ask import Ask
from adjourn.core.call import ORIGINAL, Call
from adjourn.core.diffstat import CHANGES, Diffstat, noted_changes
from adjourn.core.errors import NotFound
from adjourn.core.scene import Scene
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Task
from adjourn.ports.store import View


class History(TypedDict):
    """The parts of a scene that tell of earlier calls and work."""

    replaced: dict[str, Call]
    originals: dict[int, bytes]
    changes: Diffstat | None


def of_asks(view: View, task: Task, asks: Sequence[Ask], calls: Mapping[int, Call]) -> History:
    """Return what the asks of a run and their calls were before.

    Most have no history, and cost nothing.
    """
    edited = {
        ask.call: _original(view, calls[ask.call])
        for ask in asks
        if ask.call and ask.state is AskState.APPROVED
    }
    return History(
        replaced={
            ask.id: call for ask in asks if ask.replaces and (call := _replaced(view, ask.replaces))
        },
        originals={number: body for number, body in edited.items() if body is not None},
        changes=_changes(view, task) if any(ask.review for ask in asks) else None,
    )


def _replaced(view: View, ask_id: str) -> Call | None:
    try:
        ask = view.ask(ask_id)
        return view.call(ask.task_id, ask.call) if ask.call else None
    except NotFound:
        return None


def _original(view: View, call: Call) -> bytes | None:
    return view.document(call.task_id, f"{ORIGINAL}{call.tool_call_id}")


def _changes(view: View, task: Task) -> Diffstat | None:
    """Return what a task changed whose work is being reviewed, if that was noted."""
    return noted_changes(view.document(task.id, CHANGES), run=task.runs)


class Controller:
    """Applies the rules.

    Every surface and every supervisor calls it; nothing else writes to the store.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.store = context.store  # for reading
        self.now = context.clock
        self.decisions = Decisions(context)
        self.signing = Signing(context, self.decisions)
        self.documents = Documents(context)
        self.agents = Agents(context)
        self.asks = Asks(context, self.decisions)
        self.runs = Runs(context, self.agents)
        self.tasks = Tasks(context, decisions=self.decisions, runs=self.runs)
        self.plans = Plans(context, tasks=self.tasks, runs=self.runs)

    def scene(self, task_id: str) -> Scene:
        """Return a task with its last run and the asks of it, as of one moment."""
        with self.store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.runs else None
            asks = tuple(view.asks_of_run(task_id, task.runs))
            calls = {ask.call: view.call(task_id, ask.call) for ask in asks if ask.call}
            children = (
                standing_of(view, task, run).open_children
                if run and task.state is TaskState.WAITING
                else ()
            )
            report = report_of(view, run) if run and task.spec.is_driven else None
            told = of_asks(view, task, asks, calls)
            return Scene(
                task=task,
                run=run,
                asks=asks,
                calls=calls,
                waiting_on=children,
                report=report,
                **told,
            )

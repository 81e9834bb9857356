"""How the tasks of a plan begin, and what the store knows of a plan."""

import msgspec

from adjourn.controller import gate
from adjourn.controller.context import Context
from adjourn.controller.runs import Runs, require_free_workspace
from adjourn.controller.tasks import Tasks, keep_begun, record_of
from adjourn.core.ask import Principal, is_review
from adjourn.core.errors import Conflict, NotFound
from adjourn.core.kept_documents import NOT_MADE, PLAN, plan_key
from adjourn.core.plan.plan import (
    Begun,
    Item,
    Known,
    Plan,
    Progress,
    progress_of,
    words_of,
)
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Spec, Task
from adjourn.ports.store import View


class Plans:
    """Begins the tasks of plans, each once."""

    def __init__(self, context: Context, *, tasks: Tasks, runs: Runs) -> None:
        self._context = context
        self._tasks = tasks
        self._runs = runs

    def progress(self, plan: Plan) -> Progress:
        """Say how a plan stands, as of one moment."""
        with self._context.store.read() as view:
            record = record_of(view, plan.path)
            begun = record.items
            known = {
                item.id: _known(view, begun[item.id], plan, item)
                for item in plan.items
                if item.id in begun
            }
        return progress_of(plan, known, is_held=record.is_held)

    def is_held(self, path: str) -> bool:
        """Return whether a plan was paused, and nobody has gone on with it since."""
        with self._context.store.read() as view:
            return record_of(view, path).is_held

    def words_of_begun(self, task: Task) -> str | None:
        """Return the digest of the words with which a task was begun for its plan, if it was."""
        with self._context.store.read() as view:
            begun = record_of(view, task.spec.plan or "").items.get(task.spec.item or "")
        return begun.words if begun and begun.task_id == task.id else None

    def release(self, plan: Plan, *, by: Principal) -> None:
        """Let the tasks of a plan be started again: somebody executes it."""
        self._context.trust.authorise(by, "start")
        with self._context.change() as tx:
            record = record_of(tx.rows, plan.path)
            if record.is_held:
                released = msgspec.structs.replace(record, is_held=False)
                PLAN.keep(tx.rows, released, plan_key(plan.path))

    def begin_item(
        self,
        spec: Spec,
        *,
        words: str,
        by: Principal,
        instead_of: str | None = None,
        supervisor: str | None = None,
    ) -> Task:
        """Queue an item of a plan, or claim it at once.

        If it was begun before, that task is returned, and nothing begins.

        The task and the note that it belongs to the plan are one: whatever crashes, no item has two
        tasks. Only a failed or canceled task, named by `instead_of`, gets a successor.
        """
        self._context.trust.authorise(by, "start")
        opening = self._context.gate.opening(spec)
        with self._context.change() as tx:
            record = record_of(tx.rows, spec.plan or "")
            begun = record.items.get(spec.item or "")
            if begun and begun.task_id != instead_of:
                return tx.rows.task(begun.task_id)
            task = self._tasks.create(tx, gate.under_policy(tx, spec, opening), opening, by=by)
            keep_begun(tx.rows, spec, Begun(task_id=task.id, words=words))
            if supervisor and task.state is TaskState.QUEUED:
                # Refused, it leaves nothing that a worker would start later
                require_free_workspace(tx.rows, task)
            return self._runs.claim_if_queued(tx, task, supervisor, by=by)

    def start_plan_over(self, path: str, *, by: Principal) -> None:
        """Forget what was begun of a plan, so that all of it begins again.

        Its tasks stay, and must have ended.
        """
        self._context.trust.authorise(by, "start")
        with self._context.change() as tx:
            record = record_of(tx.rows, path)
            for name, begun in record.items.items():
                task = task_if_any(tx.rows, begun.task_id)
                if task and task.state not in ENDED:
                    raise Conflict(
                        f"{name} is {task.state}: task {task.id} has not ended",
                        way_out=f"adjourn cancel {task.id}",
                    )
            if record.items:
                PLAN.keep(tx.rows, msgspec.structs.replace(record, items={}), plan_key(path))


def _known(view: View, begun: Begun, plan: Plan, item: Item) -> Known:
    task = task_if_any(view, begun.task_id)
    in_review = task is not None and any(is_review(ask) for ask in view.open_asks_of(task.id))
    numbers = NOT_MADE.read(view, task.id) if task and task.spec.is_driven else None
    unmade = tuple(view.call(begun.task_id, number) for number in numbers or ())
    return Known(
        task=task,
        is_changed=begun.words != words_of(plan, item),
        in_review=in_review,
        unmade=unmade if task and task.state in ENDED else (),
    )


def task_if_any(view: View, task_id: str) -> Task | None:
    """Return a task, or None if it was pruned."""
    try:
        return view.task(task_id)
    except NotFound:
        return None

"""How the tasks of a plan begin, and what the store knows of a plan."""

import msgspec

from adjourn.controller import gate
from adjourn.controller.context import Context
from adjourn.controller.runs import Runs
from adjourn.controller.tasks import Tasks
from adjourn.core.ask import Principal, is_review
from adjourn.core.errors import Conflict, NotFound
from adjourn.core.kept_documents import PLAN, plan_key
from adjourn.core.plan.plan import (
    Begun,
    Item,
    Known,
    Plan,
    Progress,
    Record,
    progress_of,
    words_of,
)
from adjourn.core.states import ENDED
from adjourn.core.task import Spec, Task
from adjourn.ports.store import Change, View


class Plans:
    """Begins the tasks of plans, each once."""

    def __init__(self, context: Context, *, tasks: Tasks, runs: Runs) -> None:
        self._context = context
        self._tasks = tasks
        self._runs = runs

    def progress(self, plan: Plan) -> Progress:
        """Say how a plan stands, as of one moment."""
        with self._context.store.read() as view:
            begun = record_of(view, plan.path).items
            known = {
                item.id: _known(view, begun[item.id], plan, item)
                for item in plan.items
                if item.id in begun
            }
        return progress_of(plan, known)

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
        tasks. Only of one that came to nothing, named by `instead_of`, a second is begun.
        """
        self._context.trust.authorise(by, "start")
        opening = self._context.gate.opening(spec)
        with self._context.change() as tx:
            record = record_of(tx.rows, spec.plan or "")
            begun = record.items.get(spec.item or "")
            if begun and begun.task_id != instead_of:
                return tx.rows.task(begun.task_id)
            task = self._tasks.create(tx, gate.under_policy(tx, spec, opening), opening, by=by)
            _keep(
                tx.rows,
                record,
                {**record.items, spec.item or "": Begun(task_id=task.id, words=words)},
            )
            return self._runs.claim_if_queued(tx, task, supervisor, by=by)

    def begin_plan_anew(self, path: str, *, by: Principal) -> None:
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
                _keep(tx.rows, record, {})


def record_of(view: View, path: str) -> Record:
    """Return what was begun of a plan; of an unknown one, nothing."""
    return PLAN.read(view, plan_key(path)) or Record(path=path)


def _keep(rows: Change, record: Record, items: dict[str, Begun]) -> None:
    PLAN.keep(rows, msgspec.structs.replace(record, items=items), plan_key(record.path))


def _known(view: View, begun: Begun, plan: Plan, item: Item) -> Known:
    task = task_if_any(view, begun.task_id)
    in_review = task is not None and any(is_review(ask) for ask in view.open_asks_of(task.id))
    return Known(task=task, is_changed=begun.words != words_of(plan, item), in_review=in_review)


def task_if_any(view: View, task_id: str) -> Task | None:
    """Return a task, or None if it was pruned."""
    try:
        return view.task(task_id)
    except NotFound:
        return None

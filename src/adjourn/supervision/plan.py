"""Executes a plan: one task at a time, until nothing is ready, a person is needed, or somebody says stop."""

from collections.abc import Mapping
from typing import Protocol

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import Conflict, WorkspaceBusy
from adjourn.core.plan.plan import ItemState, Plan, Progress, Stand, words_of
from adjourn.core.review import Approved, review_of
from adjourn.core.states import TaskState
from adjourn.core.task import Spec, Task
from adjourn.supervision.supervisor import Supervisor, Watcher
from adjourn.system.signals import Signals


class Onlooker(Protocol):
    """Whoever looks on while a plan is executed; a surface."""

    def begins(self, stand: Stand, task: Task) -> Watcher | None:
        """Hear that a task is about to run, and say how its output is watched."""
        ...

    def left(self, stand: Stand, task: Task) -> None:
        """Hear how a task stands whose process has left."""
        ...

    def reviews(self, task: Task, signals: Signals) -> bool:
        """Have somebody review a task's work now, if somebody is there.

        Say whether that was done.
        """
        ...


class Execution:
    """One plan at work."""

    def __init__(
        self,
        controller: Controller,
        supervisor: Supervisor,
        plan: Plan,
        *,
        specs: Mapping[str, Spec],
        by: Principal,
        onlooker: Onlooker,
    ) -> None:
        self._controller = controller
        self._supervisor = supervisor
        self._plan = plan
        self._specs = specs
        self._by = by
        self._onlooker = onlooker

    def progress(self) -> Progress:
        """Say how the plan stands now."""
        return self._controller.plans.progress(self._plan)

    def execute_ready(self, signals: Signals) -> Progress:
        """Run what is ready, one after the other, and return how the plan stands when nothing more can start by itself.

        A pause starts nothing else, whoever asked for it; nor does a review that is not given, or one that says stop.
        """
        while not signals.count() and self._goes_on(self.progress(), signals):
            continue
        return self.progress()

    def _goes_on(self, progress: Progress, signals: Signals) -> bool:
        """Take one step, and say whether another may follow; a review that is open comes first."""
        reviewed = next(
            (stand.task for stand in progress.stands if stand.in_review and stand.task), None
        )
        if reviewed:
            return self._onlooker.reviews(reviewed, signals) and not self._says_stop(reviewed)
        stand = progress.next
        if stand is None:
            return False
        self._onlooker.left(stand, self._run(stand, signals))
        return True

    def _run(self, stand: Stand, signals: Signals) -> Task:
        if stand.state is ItemState.RUNNING and stand.task:
            return self._supervisor.join(
                signals, stand.task, watcher=self._onlooker.begins(stand, stand.task)
            )
        task = stand.task if stand.state is ItemState.QUEUED and stand.task else self._begin(stand)
        if not self._supervisor.may_run(task):
            return task
        watcher = self._onlooker.begins(stand, task)
        try:
            ended = self._supervisor.run_heeding(signals, task, watcher=watcher)
        except WorkspaceBusy:
            raise
        except Conflict:
            return self._controller.decisions.find_task(task.id)  # a worker was faster
        return (
            self._supervisor.pause(ended)
            if ended.state is TaskState.QUEUED and signals.count()
            else ended
        )

    def _begin(self, stand: Stand) -> Task:
        return self._controller.plans.begin_item(
            self._specs[stand.item.id],
            words=words_of(self._plan, stand.item),
            by=self._by,
            instead_of=stand.task.id if stand.task else None,
            supervisor=self._supervisor.name,
        )

    def _says_stop(self, task: Task) -> bool:
        with self._controller.store.read() as view:
            reviews = [ask for ask in view.asks_of_run(task.id, task.runs) if ask.review]
        return any(review_of(ask.reply) == Approved(stops=True) for ask in reviews)

"""Executes a plan: one task at a time, until nothing is ready or a person is needed."""

from collections.abc import Mapping
from typing import Protocol

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, is_review
from adjourn.core.errors import Conflict, WorkspaceBusy
from adjourn.core.plan.plan import ItemState, Plan, Progress, Stand, words_of
from adjourn.core.review import WorkApproved, review_of
from adjourn.core.states import TaskState
from adjourn.core.task import Spec, Task
from adjourn.supervision.supervisor import Supervisor, Watcher
from adjourn.system.poll import Signals


class Observer(Protocol):
    """A surface that shows the execution of a plan."""

    def begins(self, stand: Stand, task: Task) -> Watcher | None:
        """Show that a task is about to run, and return how its output is watched."""
        ...

    def left(self, stand: Stand, task: Task) -> None:
        """Show the task whose process has left."""
        ...

    def reviews(self, task: Task, signals: Signals) -> bool:
        """Let a person review a task's work, if one is there; return whether that was done."""
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
        observer: Observer,
    ) -> None:
        self._controller = controller
        self._supervisor = supervisor
        self._plan = plan
        self._specs = specs
        self._by = by
        self._observer = observer

    def progress(self) -> Progress:
        """Return how far the plan is now."""
        return self._controller.plans.progress(self._plan)

    def execute_ready(self, signals: Signals) -> Progress:
        """Run what is ready, one after the other; return how far the plan is when nothing more is.

        After a pause of any kind nothing else is started; nor after a review that is not
        given, or one that says stop.
        """
        self._controller.plans.release(self._plan, by=self._by)
        while not signals.count():
            progress = self.progress()
            # A review that is open comes first
            in_review = (stand.task for stand in progress.stands if stand.in_review and stand.task)
            reviewed = next(in_review, None)
            if reviewed:
                is_given = self._observer.reviews(reviewed, signals)
                if not is_given or self._is_told_to_stop(reviewed):
                    break
                continue
            stand = progress.next
            if stand is None:
                break
            self._observer.left(stand, self._run(stand, signals))
        return self.progress()

    def _run(self, stand: Stand, signals: Signals) -> Task:
        """Run the task of an item, or join it where it runs already, until it has left."""
        task = stand.task
        if task and stand.state is ItemState.RUNNING:
            watcher = self._observer.begins(stand, task)
            return self._supervisor.join(signals, task, watcher=watcher)
        if task is None or stand.state is not ItemState.QUEUED:
            task = self._controller.plans.begin_item(
                self._specs[stand.item.id],
                words=words_of(self._plan, stand.item),
                by=self._by,
                instead_of=task.id if task else None,
                supervisor=self._supervisor.name,
            )
        if not self._supervisor.may_run(task):
            return task
        watcher = self._observer.begins(stand, task)
        try:
            ended = self._supervisor.run_with_signals(signals, task, watcher=watcher)
        except WorkspaceBusy:
            raise
        except Conflict:
            return self._controller.decisions.find_task(task.id)  # a worker was faster
        if ended.state is TaskState.QUEUED and signals.count():
            return self._supervisor.pause(ended)
        return ended

    def _is_told_to_stop(self, task: Task) -> bool:
        with self._controller.store.read() as view:
            reviews = [ask for ask in view.asks_of_run(task.id, task.runs) if is_review(ask)]
        return any(review_of(ask.reply) == WorkApproved(stops=True) for ask in reviews)

"""The engine's part of a transaction: who takes a task, who holds it, and who takes it away."""

from collections.abc import Callable

from adjourn.core.errors import Outdated
from adjourn.core.states import TaskState
from adjourn.core.task import Run, Task
from adjourn.stores.postgres.database import Database
from adjourn.stores.postgres.steps import Steps
from adjourn.stores.postgres.tasks import TaskRows

_NOT_HERE = 5.0  # seconds before a task that does not fit this machine is offered again


class EngineRows(TaskRows, Steps):
    """Tasks as the engine hands them out: one holder at a time, for the length of a lease that is renewed."""

    def __init__(self, db: Database, *, changes: bool, lease: float) -> None:
        super().__init__(db, changes=changes)
        self._lease = lease

    def next_queued(self, pool: str, *, supervisor: str, fits: Callable[[Task], bool]) -> Task | None:
        """Take the oldest task that fits and that nobody else is taking."""
        if not self._one("has_queue", pool):
            return None
        ((queue,),) = self._all("queue_of", pool)
        self._run("repair", pool)
        put_back: list[tuple[int, float]] = []
        found = None
        while found is None and (claimed := self._one("claim_next", queue, supervisor, int(self._lease))):
            found = self._fitting(claimed[0], fits, put_back)
        for no, seconds in put_back:
            self._run("put_back", no, seconds)
        return found

    def _fitting(self, no: int, fits: Callable[[Task], bool], put_back: list[tuple[int, float]]) -> Task | None:
        # Whoever changes the task now may wait for the very row that we have just taken: never wait for them.
        if not self._one("lock_task_if_free", no):
            put_back.append((no, 0.0))
            return None
        self._remember(self._task_id(no), no)
        task = self.task(self._task_id(no))
        if task.state is TaskState.QUEUED and fits(task):
            return task
        put_back.append((no, _NOT_HERE))
        return None

    def hold(self, run: Run) -> None:
        """Hold a run for its supervisor, or raise Outdated if another holds it."""
        ((is_taken,),) = self._all("hold", self._no(run.task_id), run.supervisor, self._lease)
        if not is_taken:
            raise Outdated(f"task {run.task_id} was taken by someone else at the same moment")

    def fence(self, run: Run) -> None:
        """Raise Outdated if the run's supervisor does not hold it any more."""
        ((is_held,),) = self._all("is_held", self._no(run.task_id), run.supervisor)
        if not is_held:
            raise Outdated(f"run {run.id} was taken from its supervisor: its lease was over")

    def wrest(self, run: Run, *, only_if_over: bool) -> None:
        """Take a run away from its supervisor; or raise Outdated if its lease was renewed meanwhile."""
        ((is_taken,),) = self._all("wrest", self._no(run.task_id), only_if_over)
        if not is_taken:
            raise Outdated(f"run {run.id} is alive after all")

    def abandoned(self) -> list[Run]:
        """Return the runs whose lease is over."""
        return [self.run(task_id, number) for number, task_id in self._all("abandoned")]

"""The engine's part of a transaction: who takes a task, who holds it, and who takes it away."""

from adjourn.core.errors import Outdated
from adjourn.core.task import Run
from adjourn.stores.postgres.steps import Steps
from adjourn.stores.postgres.tasks import TaskRows


class EngineRows(TaskRows, Steps):
    """Tasks as the engine hands them out: one holder at a time, for the length of a lease that is renewed."""

    def hold(self, run: Run) -> None:
        """Hold a run for its supervisor; if another holds it, nothing of this transaction counts."""
        no = self._no(run.task_id)
        place, sentence = self._place(no), f"task {run.task_id} was taken by someone else at the same moment"
        self._later("hold", no, no, place.run, run.supervisor, self._lease, sentence, pool=place.pool)

    def fence(self, run: Run) -> None:
        """Have nothing of this transaction count if the run's supervisor does not hold it any more."""
        no = self._no(run.task_id)
        place, sentence = self._place(no), f"run {run.id} was taken from its supervisor: its lease was over"
        self._later("fence", no, no, place.run, run.supervisor, sentence, pool=place.pool)

    def wrest(self, run: Run, *, only_if_over: bool) -> None:
        """Take a run away from its supervisor; or raise Outdated if its lease was renewed meanwhile."""
        no = self._no(run.task_id)
        ((is_taken,),) = self._all("wrest", no, only_if_over)
        self._forget_place(no)
        if not is_taken:
            raise Outdated(f"run {run.id} is alive after all")

    def abandoned(self) -> list[Run]:
        """Return the runs whose lease is over."""
        return [self.run(task_id, number) for number, task_id in self._all("abandoned")]

"""Tasks and their runs, as rows."""

from adjourn.core.errors import NotFound
from adjourn.core.states import TaskState
from adjourn.core.task import PauseReason, Run, RunState, Task, Wish, run_id
from adjourn.stores.bodies import name_or_none, prefix_range, spec_body, spec_of
from adjourn.stores.rows import BITS, LAST, Tasks, Values
from adjourn.stores.sqlite.steps import Steps, as_hex, as_json, as_shim, blob


class TaskRows(Tasks, Steps):
    """What is to be done, and each time that somebody tried."""

    def task(self, task_id: str) -> Task:
        """Return the task, or raise NotFound."""
        row = self._one("task_by_id", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        return self._task(row)

    def running(self) -> list[Task]:
        """Return every task that is running."""
        return self.tasks(states=(TaskState.RUNNING,), limit=-1)[::-1]

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        ((no,),) = self._all(
            "insert_task",
            task.id,
            task.state,
            task.version,
            task.session_id,
            task.created_at,
            task.updated_at,
            task.runs,
            task.calls,
            task.asks,
            task.tries,
            task.next_call,
            task.wish,
            task.message,
            blob(task.slot),
            task.spec.pool,
        )
        self._run("insert_spec", no, spec_body(task.spec))

    def save_task(self, old: Task, new: Task) -> None:
        """Replace a task."""
        no = self._no(old.id)
        self._swap(
            "update_task",
            new.state,
            new.version,
            new.session_id,
            new.updated_at,
            new.runs,
            new.calls,
            new.asks,
            new.tries,
            new.next_call,
            new.wish,
            new.message,
            no,
            old.version,
            old.state,
            name=old.id,
        )
        if new.spec is not old.spec:
            self._run("update_spec", no, spec_body(new.spec))

    def _task(self, row: Values) -> Task:
        return Task(
            id=row[1],
            spec=spec_of(row[2]),
            state=TaskState(row[3]),
            version=row[4],
            session_id=row[5],
            created_at=row[6],
            updated_at=row[7],
            runs=row[8],
            calls=row[9],
            asks=row[10],
            tries=row[11],
            next_call=row[12],
            wish=Wish(row[13]) if row[13] else None,
            message=row[14],
            slot=as_hex(row[15]),
        )

    # --- runs ------------------------------------------------------------------------------------------------------

    def run(self, task_id: str, number: int) -> Run:
        """Return one run, or raise NotFound."""
        row = self._one("run", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no run {run_id(task_id, number)}", way_out=f"adjourn runs {task_id}")
        return _run(task_id, row)

    def runs(self, task_id: str) -> list[Run]:
        """Return all runs of a task."""
        return [_run(task_id, row) for row in self._all("runs", *self._span(task_id))]

    def run_of_checkpoint(self, prefix: str) -> Run | None:
        """Return the one run whose checkpoint the prefix names."""
        found = self._all("runs_like", *prefix_range(prefix))
        if len(found) != 1:
            return None
        no = found[0][0]
        ((task_id,),) = self._all("task_id", no >> BITS)
        return self.run(task_id, no & LAST)

    def add_run(self, run: Run) -> None:
        """Keep a new run."""
        self._run(
            "insert_run",
            self._key(run.task_id, run.number),
            run.state,
            run.version,
            run.call,
            run.supervisor,
            run.session_id,
            run.created_at,
            run.updated_at,
            as_json(run.shim),
            run.exit_code,
            run.signal,
            run.message,
            run.checkpoint_id,
            run.paused_at,
            run.pause_reason,
            run.resumed_from,
            run.restart_of,
            run.superseded_by,
            run.session_ref,
            run.resumable,
        )

    def save_run(self, old: Run, new: Run) -> None:
        """Replace a run."""
        self._swap(
            "update_run",
            new.state,
            new.version,
            new.supervisor,
            new.updated_at,
            as_json(new.shim),
            new.exit_code,
            new.signal,
            new.message,
            new.checkpoint_id,
            new.paused_at,
            new.pause_reason,
            new.superseded_by,
            new.session_ref,
            new.resumable,
            self._key(old.task_id, old.number),
            old.version,
            old.state,
            name=old.id,
        )


def _run(task_id: str, row: Values) -> Run:
    return Run(
        task_id=task_id,
        number=row[0],
        state=RunState(row[1]),
        version=row[2],
        call=row[3],
        supervisor=row[4],
        session_id=row[5],
        created_at=row[6],
        updated_at=row[7],
        shim=as_shim(row[8]),
        exit_code=row[9],
        signal=row[10],
        message=row[11],
        checkpoint_id=row[12],
        paused_at=row[13],
        pause_reason=PauseReason(row[14]) if row[14] else None,
        resumed_from=row[15],
        restart_of=row[16],
        superseded_by=row[17],
        session_ref=row[18],
        resumable=bool(row[19]),
    )

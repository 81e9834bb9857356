"""Tasks, their runs and their calls, as rows."""

import os
import time
from contextlib import suppress

from adjourn.core.backoff import backoff
from adjourn.core.call import Call
from adjourn.core.errors import NotFound, Outdated, UnreadableRow
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Run, Task
from adjourn.stores.postgres.batched_rows import (
    BatchedRows,
    QueueEntry,
    expect,
    outdated_if_missing,
)
from adjourn.stores.postgres.connection import Values
from adjourn.stores.rows import BITS, LAST
from adjourn.stores.shapes import HEXADECIMAL, SPEC, Shape, name_or_none, spec_body

_TASKS = Shape(
    Task,
    called="{id}",
    columns=("id", "state", "version", "slot", "next_call", "wish"),
    known=("spec",),
    as_column={"slot": HEXADECIMAL, "spec": SPEC},
)
_RUNS = Shape(
    Run,
    called="{task_id}.{number}",
    columns=("state", "version", "supervisor", "checkpoint_id", "pause_reason"),
    known=("task_id", "number"),
)
_CALLS = Shape(
    Call,
    called="{task_id}.tc_{number}",
    columns=("state", "version", "digest", "claimed_by", "approved_by", "label"),
    known=("task_id", "number", "body"),
    as_column={"digest": HEXADECIMAL},
)

OF_TASK = 9  # columns that make a task
_BACKOFF = 0.5  # seconds before a start that failed is tried again; it doubles
_LONGEST = 60.0


class TaskRows(BatchedRows):
    """What is kept of tasks, runs and calls.

    A task that is queued or runs has its row in the engine; any other has none.
    """

    # --- tasks ------------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task:
        if (self._changes or task_id in self._known.numbers) and (
            no := self._no(task_id)
        ) in self._known.tasks:
            return self._known.tasks[no]
        row = self._one("task_by_id", name_or_none(task_id))
        if row is None:
            raise NotFound(f"no task {task_id}", way_out="adjourn tasks")
        self._remember(task_id, row[0])
        task = self._known.tasks[row[0]] = task_of(row)
        return task

    def _task(self, row: Values) -> Task:
        return task_of(row)

    def running(self) -> list[Task]:
        return self._readable(self._remember_running, self._all("running_tasks"))

    def _remember_running(self, row: Values) -> Task:
        """Remember what is looked at next, in a view: the run of a task that runs."""
        task, run = task_of(row[:OF_TASK]), row[OF_TASK:]
        if run[0] is not None and not self._changes:
            self._remember(task.id, row[0])
            with suppress(UnreadableRow):  # its next reader gets the error
                self._known.runs[run[0]] = run_of(task.id, run)
        return task

    def add_task(self, task: Task) -> None:
        place = (
            _new_entry(task.spec.pool)
            if task.state is TaskState.QUEUED
            else QueueEntry(task.spec.pool)
        )
        columns = [
            *_TASKS.columns(task),
            place.pool,
            task.parent_task,
            _TASKS.body(task),
            place.task,
            place.run,
        ]
        ((no, family),) = self._all("insert_task", *columns, spec_body(task.spec))
        if no == family:
            self._remember(task.id, no)  # nobody else can know of it yet
        if task.state is TaskState.QUEUED:
            self._enqueue(no, task, place)

    def save_task(self, old: Task, new: Task) -> None:
        no, current = self._no(old.id), self.task(old.id)
        expect((current.version, current.state) == (old.version, old.state), old.id)
        self._known.tasks[no] = new
        place = self._move_in_engine(no, old, new)
        self._write(
            "write_task",
            no,
            no,
            *_TASKS.columns(new)[1:],
            _TASKS.body(new),
            place.task,
            place.run,
            None,
        )
        if new.spec is not old.spec:
            self._execute("update_spec", no, spec_body(new.spec))

    def _move_in_engine(self, no: int, old: Task, new: Task) -> QueueEntry:
        """Put a task into its queue, back into it, or take it out.

        Return where it came to in this transaction.
        """
        place = self._entry(no)
        if new.state not in _IN_ENGINE:
            self._dequeue(no, place)
        elif old.state not in _IN_ENGINE:
            self._enqueue(no, new, _new_entry(place.pool))
        elif new.state is TaskState.QUEUED and old.state is not TaskState.QUEUED:
            self._write("put_back", no, no, _delay(new))
            self._forget_entry(no)  # it may have another from here on
        if new.state is not TaskState.QUEUED:
            self._queued.pop(new.id, None)
        return self._entered.get(no, _NOWHERE)

    def _enqueue(self, no: int, task: Task, place: QueueEntry) -> None:
        if place.pool not in self._db.queues and place.pool not in self.queues:
            self._execute("make_queue", place.pool)
            self.queues.add(place.pool)
        self._write("enqueue", no, no, place.task, place.run, pool=place.pool)
        self._known.entries[no] = self._entered[no] = place
        self._queued[task.id] = place.pool

    def _dequeue(self, no: int, place: QueueEntry) -> None:
        if place.task:
            self._write("dequeue", no, no, place.task, pool=place.pool)
        self._known.entries[no] = QueueEntry(place.pool)
        self._entered.pop(no, None)

    def _entry(self, no: int) -> QueueEntry:
        """Return where the engine keeps a task."""
        if no not in self._known.entries:
            (row,) = self._all("place", no)
            self._known.entries[no] = QueueEntry(*row)
        return self._known.entries[no]

    def _forget_entry(self, no: int) -> None:
        self._known.entries.pop(no, None)
        self._entered.pop(no, None)

    # --- runs -------------------------------------------------------------------------------------

    def _run_of(self, task_id: str, row: Values) -> Run:
        return run_of(task_id, row)

    def run(self, task_id: str, number: int) -> Run:
        key = self._key(task_id, number)
        if key not in self._known.runs:
            self._known.runs[key] = super().run(task_id, number)
        return self._known.runs[key]

    def add_run(self, run: Run) -> None:
        key = self._key(run.task_id, run.number)
        self._known.runs[key] = run
        self._execute("insert_run", key, *_RUNS.columns(run), _RUNS.body(run))

    def save_run(self, old: Run, new: Run) -> None:
        key = self._key(old.task_id, old.number)
        with outdated_if_missing(old.id):
            current = self.run(old.task_id, old.number)
        expect((current.version, current.state) == (old.version, old.state), old.id)
        self._known.runs[key] = new
        self._write("write_run", key >> BITS, key, *_RUNS.columns(new), _RUNS.body(new))

    # --- calls ------------------------------------------------------------------------------------

    def call(self, task_id: str, number: int) -> Call:
        key = self._key(task_id, number)
        return self._known.calls.get(key) or self._remember_call(super().call(task_id, number))

    def _call_of(self, task_id: str, row: Values) -> Call:
        return call_of(task_id, row)

    def _remember_call(self, call: Call) -> Call:
        """Remember a call as it stands."""
        no = self._no(call.task_id)
        self._known.calls[(no << BITS) + call.number] = call
        if no in self._known.calls_of:
            self._known.calls_of[no][call.number] = call
        return call

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        if (calls := self._known.calls_of.get(self._no(task_id))) is not None:
            return [call for _, call in sorted(calls.items()) if call.state is state]
        return super().calls_in(task_id, state)

    def add_call(self, call: Call) -> None:
        no = self._key(call.task_id, call.number)
        self._execute("insert_call", no, *_CALLS.columns(call), _CALLS.body(call), call.body)
        self._remember_call(call)

    def save_call(self, old: Call, new: Call) -> None:
        no = self._key(old.task_id, old.number)
        with outdated_if_missing(old.id):
            current = self.call(old.task_id, old.number)
        guard = (current.version, current.state, current.digest, current.claimed_by)
        expect(guard == (old.version, old.state, old.digest, old.claimed_by), old.id)
        self._remember_call(new)
        self._write("write_call", no >> BITS, no, *_CALLS.columns(new), _CALLS.body(new))
        if new.digest != old.digest:
            self._write("update_call_body", no >> BITS, no, new.body)


_IN_ENGINE = frozenset({TaskState.QUEUED, TaskState.RUNNING})
_NOWHERE = QueueEntry("")


def _new_entry(pool: str) -> QueueEntry:
    """Return a place of its own for a task, with names as the engine gives them.

    Those that are made together lie together.
    """
    return QueueEntry(pool, _uuid7(), _uuid7())


def _uuid7() -> str:
    moment, chance = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10))
    bits = (moment << 80 | chance) & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return f"{bits:032x}"


def _delay(task: Task) -> float:
    """Return how long a task rests before it is started: the longer, the more often that failed."""
    return backoff(task.tries, first=_BACKOFF, longest=_LONGEST) if task.tries else 0.0


def task_of(row: Values) -> Task:
    """Return the task that a row holds."""
    _, *columns, body, spec = row
    return _TASKS.value(columns, body, spec=spec)


def run_of(task_id: str, row: Values) -> Run:
    """Return the run that a row holds."""
    no, *columns, body = row
    return _RUNS.value(columns, body, task_id=task_id, number=no & LAST)


def call_of(task_id: str, row: Values) -> Call:
    """Return the call that a row holds."""
    no, *columns, body, content = row
    return _CALLS.value(columns, body, task_id=task_id, number=no & LAST, body=content)


class EngineRows(TaskRows):
    """Tasks as the engine hands them out.

    One holder at a time, for the length of a lease that is renewed.
    """

    def hold(self, run: Run) -> None:
        no = self._no(run.task_id)
        place, sentence = (
            self._entry(no),
            f"task {run.task_id} was taken by someone else at the same moment",
        )
        self._write(
            "hold", no, no, place.run, run.supervisor, self._lease, sentence, pool=place.pool
        )

    def fence(self, run: Run) -> None:
        no = self._no(run.task_id)
        place, sentence = (
            self._entry(no),
            f"run {run.id} was taken from its supervisor: its lease was over",
        )
        self._write("fence", no, no, place.run, run.supervisor, sentence, pool=place.pool)

    def take_over(self, run: Run, *, only_if_over: bool) -> None:
        no = self._no(run.task_id)
        ((is_taken,),) = self._all("wrest", no, only_if_over)
        self._forget_entry(no)
        if not is_taken:
            raise Outdated(f"run {run.id} is alive after all")

    def abandoned(self) -> list[Run]:
        return self._readable(lambda row: self.run(row[1], row[0]), self._all("abandoned"))

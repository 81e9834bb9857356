"""Takes ready tasks, has them run, and notices what dead supervisors left."""

import gc
import time
from collections.abc import Callable

from adjourn.controller.controller import Controller
from adjourn.core.errors import (
    AdjournError,
    CannotResume,
    Conflict,
    NotStarted,
    StoreProblem,
    WorkspaceBusy,
)
from adjourn.core.settings import Drain, Settings
from adjourn.core.states import TaskState
from adjourn.core.task import DEFAULT_POOL, Run, Task
from adjourn.ports.store import Listener, View
from adjourn.supervision.shims import Active
from adjourn.supervision.supervisor import Supervisor
from adjourn.system.poll import Poll
from adjourn.system.shortage import is_shortage
from adjourn.system.signals import Signals

_BACKOFF = 0.5  # seconds before the first new try; it doubles
_LONGEST = 60.0
_LONGEST_HOLD = 15.0  # seconds between two starts on a machine that lacks something
_TRIES = 2  # at one look: of a task that somebody was just changing, the second one waits


Log = Callable[..., None]  # log(event, **facts)


class Worker:
    """One process that runs the ready tasks of a pool, several at a time, and sleeps while there are none."""

    def __init__(  # noqa: PLR0913 -- what it does between two looks is handed in, each by its name
        self,
        controller: Controller,
        supervisor: Supervisor,
        *,
        settings: Settings,
        log: Log,
        on_settled: Callable[[Task], None],
        recover: Callable[[], list[Task]],
        look_for_responses: Callable[[], object],
        on_look: Callable[[], None] = lambda: None,
        pool: str = DEFAULT_POOL,
    ) -> None:
        self._controller = controller
        self._supervisor = supervisor
        self._settings = settings
        self._log = log
        self._on_settled = on_settled
        self._recover = recover
        self._look_for_responses = look_for_responses
        self._on_look = on_look
        self._pool = pool
        self._active: dict[int, Active] = {}
        self._unreported: list[Active] = []
        self._not_before: dict[str, tuple[float, float]] = {}
        # Nothing is started before, because of the machine
        self._held_until, self._hold = 0.0, _BACKOFF / 2
        # What the machine lacks, as far as it was logged since the last start
        self._shortages: set[str] = set()
        self._is_woken = False
        self._trouble: str | None = None
        self._silence: str | None = None
        self._drain_deadline: float | None = None
        self._poll = Poll()
        supervisor.on_shortage = self._log_shortage

    @property
    def active(self) -> int:
        """How many runs are under way."""
        return len(self._active)

    def work(self, signals: Signals, *, once: bool = False) -> None:
        """Run ready tasks until told to stop and all runs have left.

        With `once`, until nothing is left to do.
        """
        gc.freeze()  # what a collection never touches stays shared with the fork server
        gc.enable()  # short commands go without; this one lasts
        ear = self._controller.store.listen()
        self._poll = Poll(ear, signals)
        try:
            while self._goes_on(signals, ear, once=once):
                self._wait(ear)
        finally:
            ear.close()

    def _goes_on(self, signals: Signals, ear: Listener, *, once: bool) -> bool:
        stops = signals.count()
        self._heed(stops)
        try:
            self._supervisor.give_back()
            self._report_again()
            if self._is_woken and not stops:
                # What was just decided does not wait for what the dead left
                self._start_ready(signals)
            self._settle()
            if not stops:
                self._take_over()
                self._start_ready(signals)
            self._tell_of_leases()
            self._tell_of_silence(ear)
        except StoreProblem as error:
            if once and not (self._active or self._unreported):
                raise  # nobody would look again: what was to be done is not done
            self._tell_of_store(error)
        except (NotStarted, OSError) as error:
            if isinstance(error, OSError) and not is_shortage(error.errno):
                raise
            if once and not (self._active or self._unreported):
                raise
            self._hold_back(error)
        self._on_look()
        self._leave_on_disk(stops)
        return bool(self._active or self._unreported) or not (
            stops or (once and not self._not_before)
        )

    # --- what happens between two waits -----------------------------------------------------------

    def _tell_of_leases(self) -> None:
        """Say that our leases are not renewed, once for each reason.

        A database that can be read need not take them.
        """
        before, self._trouble = self._trouble, self._supervisor.trouble
        if self._trouble not in {None, before}:
            self._log("store_error", error=self._trouble)

    def _tell_of_silence(self, ear: Listener) -> None:
        """Say that nobody wakes us, once for each reason: decisions then wait until we look."""
        before, self._silence = self._silence, ear.trouble
        if self._silence not in {None, before}:
            self._log(
                "cannot_listen",
                error=self._silence,
                way_out=f"it looks every {self._settings.poll_interval:g} s instead",
            )

    def _tell_of_store(self, error: StoreProblem, **facts: object) -> None:
        self._log("store_error", **facts, error=error.sentence, way_out=error.way_out)

    def _settle(self) -> None:
        for task in self._recover():
            self._log("settled", task=task.id, state=task.state)
            self._on_settled(task)
        self._look_for_responses()

    def _take_over(self) -> None:
        """Adopt the runs whose supervisor died and whose shim lives.

        Nothing of them is started again.
        """
        for run in self._controller.runs.orphans():
            try:
                active = self._supervisor.adopt(run)
            except Conflict:
                continue  # another worker was faster
            if active:
                self._log("adopted", run=run.id)
                self._watch(active)

    def _start_ready(self, signals: Signals) -> None:
        if time.monotonic() < self._held_until:
            return
        tries: dict[str, int] = {}
        self._forget_pauses()
        while self.active < self._settings.max_active and (task := self._next(tries)):
            if signals.taken():
                # It would be claimed, and paused at its gate: it stays queued, for the next worker
                return
            tries[task.id] = tries.get(task.id, 0) + 1
            self._start(task, signals)

    def _next(self, tries: dict[str, int]) -> Task | None:
        now = time.monotonic()

        def fits(task: Task) -> bool:
            is_due = self._not_before.get(task.id, (0.0, 0.0))[0] <= now
            return is_due and tries.get(task.id, 0) < _TRIES and self._supervisor.can_run(task)

        return self._controller.store.next_queued(
            self._pool, supervisor=self._supervisor.name, fits=fits
        )

    def _forget_pauses(self) -> None:
        if self._not_before:
            with self._controller.store.read() as view:
                self._not_before = {
                    name: when for name, when in self._not_before.items() if _is_queued(view, name)
                }

    def _start(self, task: Task, signals: Signals) -> None:
        try:
            begun = self._supervisor.begin(task, may_start=lambda: not signals.count())
        except CannotResume as error:
            self._on_settled(
                self._controller.tasks.give_up(task.id, why=f"{error.sentence}; {error.way_out}")
            )
            self._log("given_up", task=task.id, error=error.sentence)
            return
        except WorkspaceBusy:
            self._not_before[task.id] = (time.monotonic() + self._settings.poll_interval, _BACKOFF)
            return
        except Conflict:
            return  # another supervisor has it
        except StoreProblem:
            raise
        except NotStarted:
            # Should it be the task after all, the others are not kept by it
            self._delay(task.id, longest=_LONGEST_HOLD)
            raise
        except AdjournError as error:
            self._log(
                "not_started", task=task.id, error=error.sentence, again_in=self._delay(task.id)
            )
            return
        if isinstance(begun, Active):
            self._held_until, self._hold = 0.0, _BACKOFF / 2
            self._shortages.clear()
            self._log("started", run=begun.run.id)
            self._watch(begun)
        else:
            self._log("not_started", task=begun.id, state=begun.state)
            self._on_settled(begun)

    def _delay(self, task_id: str, *, longest: float = _LONGEST) -> float:
        """Try a task again later, and later still the next time; return in how many seconds."""
        _, pause = self._not_before.get(task_id, (0.0, _BACKOFF / 2))
        longer = min(2 * pause, longest)
        self._not_before[task_id] = (time.monotonic() + longer, longer)
        return longer

    def _hold_back(self, error: NotStarted | OSError) -> None:
        """Start nothing for a while, longer each time, and log each reason once.

        The machine lacks something.
        """
        self._hold = min(2 * self._hold, _LONGEST_HOLD)
        self._held_until = time.monotonic() + self._hold
        reason = error.reason if isinstance(error, NotStarted) else error.strerror or str(error)
        if reason not in self._shortages:
            self._shortages.add(reason)
            way_out = "nothing is lost: queued tasks are started once the machine can"
            self._log("holding_back", error=reason, again_in=self._hold, way_out=way_out)

    def _log_shortage(self, run: Run, why: str) -> None:
        """Log why a call of an agent cannot be started for now."""
        way_out = "nothing is lost: the call is started once the machine can"
        self._log("holding_back", run=run.id, error=why, way_out=way_out)

    def _watch(self, active: Active) -> None:
        self._not_before.pop(active.run.task_id, None)
        self._active[active.fileno()] = active
        self._poll.add(active.fileno())

    # --- the wait ---------------------------------------------------------------------------------

    def _wait(self, ear: Listener) -> None:
        ready = self._poll.wait(self._patience())
        self._is_woken = ear.fileno() in ready
        self._tend(ready)

    def _tend(self, ready: set[int]) -> None:
        """See to the runs that have left, and to what runs beside agents.

        A call may have been let through meanwhile.
        """
        for fd, active in list(self._active.items()):
            if fd not in ready and not active.is_driven:
                continue
            try:
                if self._supervisor.tend(active):
                    self._end(fd)
            except StoreProblem as error:
                self._tell_of_store(error, run=active.run.id)
            except OSError as error:
                if not is_shortage(error.errno):
                    raise
                self._hold_back(error)
            except Conflict as error:
                self._log("taken_away", run=active.run.id, error=error.sentence)
                self._supervisor.let_go(self._unwatched(fd))

    def _unwatched(self, fd: int) -> Active:
        self._poll.remove(fd)
        return self._active.pop(fd)

    def _patience(self) -> float:
        now = time.monotonic()
        moments = [moment for moment, _ in self._not_before.values()]
        moments += [active.retry_at for active in self._active.values() if active.retry_at > now]
        if self._held_until > now:
            moments = [max(moment, self._held_until) for moment in moments]
        if self._drain_deadline is not None and self._drain_deadline > now:
            moments.append(self._drain_deadline)
        return min(
            [
                self._settings.poll_interval,
                self._supervisor.interval,
                *(max(moment - now, 0.01) for moment in moments),
            ]
        )

    def _end(self, fd: int) -> None:
        active = self._unwatched(fd)
        active.leave()
        try:
            self._report(active)
        except (StoreProblem, OSError) as error:
            if isinstance(error, StoreProblem):
                self._tell_of_store(error, run=active.run.id)
            elif is_shortage(error.errno):
                self._hold_back(error)
            else:
                raise
            self._unreported.append(active)  # its result is on disk; it is told at the next look

    def _report(self, active: Active) -> None:
        try:
            task = self._supervisor.end(active)
        except Conflict as error:
            self._log("taken_away", run=active.run.id, error=error.sentence)
            return
        except NotStarted as error:
            self._delay(active.run.task_id, longest=_LONGEST_HOLD)
            self._hold_back(error)
            return
        why = {"why": task.message} if task.state is TaskState.FAILED else {}
        self._log("left", run=active.run.id, state=task.state, **why)
        self._on_settled(task)

    def _report_again(self) -> None:
        while self._unreported:
            self._report(self._unreported[-1])
            self._unreported.pop()

    def _leave_on_disk(self, stops: int) -> None:
        """Give up telling how runs ended, once told to stop.

        Their results are on disk, and the next worker here tells them.
        """
        if stops > 1 or (stops and self._is_drain_over()):
            for active in self._unreported:
                self._log(
                    "unreported",
                    run=active.run.id,
                    way_out="start a worker on this machine once the store is there",
                )
            self._unreported.clear()

    def _heed(self, stops: int) -> None:
        """Pass on requests to stop: a person's for one run, or ours for all of them."""
        if stops and self._drain_deadline is None:
            self._drain_deadline = time.monotonic() + self._settings.grace
            self._log("draining", active=self.active)
        if not self._active:
            return
        drained, unwanted = self._drained(stops), self._unwanted()
        for active in self._active.values():
            active.heed(drained + (active.run.task_id in unwanted))

    def _unwanted(self) -> set[str]:
        try:
            return self._supervisor.unwanted()
        except StoreProblem as error:
            self._tell_of_store(error)
            return set()

    def _drained(self, stops: int) -> int:
        if not stops or self._settings.drain is Drain.PAUSE or self._is_drain_over():
            return stops
        return stops - 1

    def _is_drain_over(self) -> bool:
        return self._drain_deadline is not None and time.monotonic() >= self._drain_deadline


def _is_queued(view: View, task_id: str) -> bool:
    return any(view.task(found).state is TaskState.QUEUED for found in view.tasks_like(task_id))

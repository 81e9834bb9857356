"""Takes ready tasks, runs them, and adopts or settles what dead supervisors left."""

import gc
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress

from adjourn.clarifications.exchange import recover, report_each_once, take_responses
from adjourn.controller.controller import Controller
from adjourn.core.backoff import backoff
from adjourn.core.errors import (
    AdjournError,
    CannotResume,
    Conflict,
    NotFound,
    NotStarted,
    StoreOlder,
    StoreProblem,
    UnreadableRow,
    WorkspaceBusy,
)
from adjourn.core.redact import Redactor
from adjourn.core.settings import Drain, Settings
from adjourn.core.states import TaskState
from adjourn.core.task import DEFAULT_POOL, Run, Task
from adjourn.ports.store import Listener
from adjourn.supervision.manifest_file import write_manifest
from adjourn.supervision.shims import ActiveRun
from adjourn.supervision.supervisor import Supervisor
from adjourn.system.machine import is_shortage
from adjourn.system.poll import Poll, Signals
from adjourn.views.block import CommandWriter

# Seconds before a start that failed is tried again: first, longest of a task, longest of a machine
_BACKOFF, _LONGEST, _LONGEST_HOLD = 0.5, 60.0, 15.0
_TRIES = 2  # in one round: of a task that somebody was just changing, the second one waits


Log = Callable[..., None]  # log(event, **facts)


_STILL_WRITTEN = 5.0  # seconds in which somebody may still be writing a response file


class Worker:
    """Runs the ready tasks of a pool, several at a time, and sleeps while there are none."""

    def __init__(
        self,
        controller: Controller,
        supervisor: Supervisor,
        *,
        settings: Settings,
        log: Log,
        root: str,
        commands: CommandWriter,
        redactor: Redactor,
        check_store: Callable[[], None] = lambda: None,
        pool: str = DEFAULT_POOL,
    ) -> None:
        self._controller = controller
        self._supervisor = supervisor
        self._settings = settings
        self._log = log
        self._root = root
        self._commands = commands
        self._redactor = redactor
        self._refuse = report_each_once(
            root, lambda sentence: log("response_refused", error=sentence)
        )
        self._is_place_noted = False
        self._check_store = check_store
        self._pool = pool
        self._poll = Poll()
        self._active: dict[int, ActiveRun] = {}  # by the descriptor that is polled
        self._unreported: list[ActiveRun] = []  # they have left, and the store does not know yet
        # By task: not to be started before that moment, and how often its start has failed
        self._delays: dict[str, tuple[float, int]] = {}
        # Nothing is started before that moment, because of the machine; how often in a row
        self._held_until, self._holds = 0.0, 0
        # What was logged once for each reason: what the machine lacks since the last start, why
        # leases are not renewed, why nobody wakes us
        self._shortages: set[str] = set()
        self._lease_trouble: str | None = None
        self._listener_trouble: str | None = None
        self._unreadable: set[str] = set()
        self._drain_deadline: float | None = None
        supervisor.on_shortage = self._log_shortage

    @property
    def active(self) -> int:
        """How many runs there are."""
        return len(self._active)

    def work(self, signals: Signals, *, once: bool = False) -> Generator[int, None, None]:
        """Run ready tasks until told to stop and all runs have left.

        With `once`, until nothing is left to do. Before each wait, yield how many runs are active.
        """
        gc.freeze()  # what a collection never touches stays shared with the fork server
        gc.enable()  # short commands go without; this one lasts
        with closing(self._controller.store.listen()) as listener:
            self._poll = Poll(listener, signals)
            is_woken = False
            while True:
                goes_on = self._do_round(signals, listener, is_woken=is_woken, once=once)
                yield self.active
                if not goes_on:
                    return
                ready = self._poll.wait(self._seconds_to_wait())
                is_woken = listener.fileno() in ready
                self._advance_runs(ready)

    def _do_round(
        self, signals: Signals, listener: Listener, *, is_woken: bool, once: bool
    ) -> bool:
        """Do all that can be done now; return whether there may be more to do later."""
        stops = signals.count()
        self._pass_on_stops(stops)
        try:
            self._supervisor.give_back()
            while self._unreported:
                self._report(self._unreported[-1])
                self._unreported.pop()
            if is_woken and not stops:
                self._start_ready(signals)  # what was just decided does not wait for what follows
            for task in recover(self._controller, self._root):
                self._log("settled", task=task.id, state=task.state)
                self._write_manifest(task)
            self._log_unreadable()
            if not self._is_place_noted:  # from where it uses the store; only while nothing runs
                by = self._controller.decisions.principal()
                self._is_place_noted = self._controller.decisions.note_place(by)
            take_responses(
                self._controller, self._root, refuse=self._refuse, patience=_STILL_WRITTEN
            )
            if not stops:
                self._adopt_orphans()
                self._start_ready(signals)
            self._log_troubles(listener)
            self._log_unreadable()
        except StoreProblem as error:
            if isinstance(error, StoreOlder):
                # Accepting that copy settles what ended here. Not only the first of them
                # is let go: none can be reported before that.
                for active in self._unreported:
                    self._supervisor.stop_renewing(active.run)
            if once and not (self._active or self._unreported):
                raise  # nobody would try again: what was to be done is not done
            self._log_store_problem(error)
        except (NotStarted, OSError) as error:
            if isinstance(error, OSError) and not is_shortage(error.errno):
                raise
            if once and not (self._active or self._unreported):
                raise
            self._hold_back(error)
        self._check_store()

        if stops > 1 or (stops and self._is_drain_over()):
            # The results are on disk: the next worker here reports them
            way_out = "start a worker on this machine once the store is there"
            for active in self._unreported:
                self._log("unreported", run=active.run.id, way_out=way_out)
            self._unreported.clear()
        return bool(self._active or self._unreported) or not (stops or (once and not self._delays))

    def _write_manifest(self, task: Task) -> None:
        """Write the manifest of a task that has paused."""
        try:
            scene = self._controller.scene(task.id)
        except UnreadableRow as error:
            error.note_in(self._controller.store.unreadable)
            return
        write_manifest(
            scene,
            root=self._root,
            commands=self._commands,
            redactor=self._redactor,
            warn=lambda sentence: self._log("no_manifest", error=sentence),
        )

    # --- runs begin -------------------------------------------------------------------------------

    def _adopt_orphans(self) -> None:
        """Adopt the runs whose supervisor died and whose shim lives; nothing is started again."""
        for run in self._controller.runs.orphans():
            try:
                active = self._supervisor.adopt(run)
            except Conflict:
                continue  # another worker was faster
            except UnreadableRow as error:
                error.note_in(self._controller.store.unreadable)
                continue
            if active:
                self._log("adopted", run=run.id)
                self._watch(active)

    def _start_ready(self, signals: Signals) -> None:
        """Start what is queued and due, as many as may be active at a time."""
        if time.monotonic() < self._held_until:
            return
        if self._delays:
            with self._controller.store.read() as view:
                queued: set[str] = set()
                for task_id in self._delays:
                    with suppress(NotFound, UnreadableRow):
                        if view.task(task_id).state is TaskState.QUEUED:
                            queued.add(task_id)
            self._delays = {name: delay for name, delay in self._delays.items() if name in queued}
        now = time.monotonic()
        tries: dict[str, int] = {}
        held: set[str] = set()

        def fits(task: Task) -> bool:
            is_due = self._delays.get(task.id, (0.0, 0))[0] <= now and task.id not in held
            return is_due and tries.get(task.id, 0) < _TRIES and self._supervisor.can_run(task)

        while self.active < self._settings.max_active:
            task = self._controller.store.next_queued(
                self._pool, supervisor=self._supervisor.name, fits=fits
            )
            # Told to stop, it would be claimed and paused at its gate: the next worker starts it
            if task is None or signals.count():
                return
            if task.spec.plan and self._controller.plans.is_held(task.spec.plan):
                held.add(task.id)  # its plan was paused: somebody has to say that it goes on
                continue
            tries[task.id] = tries.get(task.id, 0) + 1
            self._start(task, signals)
            now = time.monotonic()

    def _start(self, task: Task, signals: Signals) -> None:
        try:
            begun = self._supervisor.begin(task, may_start=lambda: not signals.count())
        except CannotResume as error:
            why = f"{error.sentence}; {error.way_out}"
            self._write_manifest(self._controller.tasks.give_up(task.id, why=why))
            self._log("given_up", task=task.id, error=error.sentence)
            return
        except WorkspaceBusy:
            self._delays[task.id] = (time.monotonic() + self._settings.poll_interval, 1)
            return
        except Conflict:
            return  # another supervisor has it
        except StoreProblem:
            raise
        except NotStarted:
            # Should the task be the reason after all, the others are not kept by it
            self._delay(task.id, longest=_LONGEST_HOLD)
            raise
        except UnreadableRow as error:
            error.note_in(self._controller.store.unreadable)
            return
        except AdjournError as error:
            again_in = self._delay(task.id)
            self._log("not_started", task=task.id, error=error.sentence, again_in=again_in)
            return
        if isinstance(begun, ActiveRun):
            self._held_until, self._holds = 0.0, 0
            self._shortages.clear()
            self._log("started", run=begun.run.id)
            self._watch(begun)
        else:
            self._log("not_started", task=begun.id, state=begun.state)
            self._write_manifest(begun)

    def _delay(self, task_id: str, *, longest: float = _LONGEST) -> float:
        """Try a task again later, and later still the next time; return in how many seconds."""
        tries = self._delays.get(task_id, (0.0, 0))[1] + 1
        pause = backoff(tries, first=_BACKOFF, longest=longest)
        self._delays[task_id] = (time.monotonic() + pause, tries)
        return pause

    def _hold_back(self, error: NotStarted | OSError) -> None:
        """Start nothing for a while, longer each time, because the machine lacks something."""
        self._holds += 1
        pause = backoff(self._holds, first=_BACKOFF, longest=_LONGEST_HOLD)
        self._held_until = time.monotonic() + pause
        reason = error.reason if isinstance(error, NotStarted) else error.strerror or str(error)
        if reason not in self._shortages:
            self._shortages.add(reason)
            way_out = "nothing is lost: queued tasks are started once the machine can"
            self._log("holding_back", error=reason, again_in=pause, way_out=way_out)

    # --- runs last --------------------------------------------------------------------------------

    def _watch(self, active: ActiveRun) -> None:
        self._delays.pop(active.run.task_id, None)
        self._active[active.fileno()] = active
        self._poll.add(active.fileno())

    def _unwatch(self, fd: int) -> ActiveRun:
        self._poll.remove(fd)
        return self._active.pop(fd)

    def _seconds_to_wait(self) -> float:
        """Return when to do the next round, unless an event comes first."""
        now = time.monotonic()
        moments = [moment for moment, _ in self._delays.values()]
        moments += [active.retry_at for active in self._active.values() if active.retry_at > now]
        if self._held_until > now:
            moments = [max(moment, self._held_until) for moment in moments]
        if self._drain_deadline is not None and self._drain_deadline > now:
            moments.append(self._drain_deadline)
        waits = [max(moment - now, 0.01) for moment in moments]
        return min([self._settings.poll_interval, self._supervisor.interval, *waits])

    def _advance_runs(self, ready: set[int]) -> None:
        """End the runs that have left; of agents also start and conclude the calls."""
        for fd, active in list(self._active.items()):
            if fd not in ready and not active.is_driven:
                continue
            try:
                if self._supervisor.advance(active):
                    self._end(fd)
            except StoreProblem as error:
                self._log_store_problem(error, run=active.run.id)
            except OSError as error:
                if not is_shortage(error.errno):
                    raise
                self._hold_back(error)
            except Conflict as error:
                self._log("taken_away", run=active.run.id, error=error.sentence)
                self._supervisor.abandon(self._unwatch(fd))
            except UnreadableRow as error:
                error.note_in(self._controller.store.unreadable)
                self._supervisor.abandon(self._unwatch(fd))

    def _pass_on_stops(self, stops: int) -> None:
        """Pass on requests to stop: a person's for one run, or ours for all of them."""
        if stops and self._drain_deadline is None:
            self._drain_deadline = time.monotonic() + self._settings.grace
            self._log("draining", active=self.active)
        if not self._active:
            return
        if stops and self._settings.drain is not Drain.PAUSE and not self._is_drain_over():
            stops -= 1  # the runs may end in peace
        unwanted: set[str] = set()
        try:
            unwanted = self._supervisor.tasks_to_stop()
        except StoreProblem as error:
            self._log_store_problem(error)
        for active in self._active.values():
            active.stop(stops + (active.run.task_id in unwanted))

    def _is_drain_over(self) -> bool:
        return self._drain_deadline is not None and time.monotonic() >= self._drain_deadline

    # --- runs end ---------------------------------------------------------------------------------

    def _end(self, fd: int) -> None:
        active = self._unwatch(fd)
        active.close()
        try:
            self._report(active)
        except (StoreProblem, OSError) as error:
            if isinstance(error, StoreProblem):
                self._log_store_problem(error, run=active.run.id)
            elif is_shortage(error.errno):
                self._hold_back(error)
            else:
                raise
            self._unreported.append(active)  # its result is on disk: the next round reports it

    def _report(self, active: ActiveRun) -> None:
        try:
            task = self._supervisor.end(active)
        except Conflict as error:
            self._log("taken_away", run=active.run.id, error=error.sentence)
            return
        except UnreadableRow as error:
            error.note_in(self._controller.store.unreadable)
            return
        except NotStarted as error:
            self._delay(active.run.task_id, longest=_LONGEST_HOLD)
            self._hold_back(error)
            return
        if again_at := self._supervisor.retry_at.pop(task.id, 0.0):
            self._delays[task.id] = (again_at, task.tries)
        why = {"why": task.message} if task.state is TaskState.FAILED else {}
        self._log("left", run=active.run.id, state=task.state, **why)
        self._write_manifest(task)

    # --- the log ----------------------------------------------------------------------------------

    def _log_troubles(self, listener: Listener) -> None:
        """Log once for each reason that leases are not renewed, or that nobody wakes us.

        A database that can be read need not renew leases. Where nobody wakes us, decisions wait
        until the next round.
        """
        before, self._lease_trouble = self._lease_trouble, self._supervisor.trouble
        if self._lease_trouble not in {None, before}:
            self._log("store_error", error=self._lease_trouble)
        before, self._listener_trouble = self._listener_trouble, listener.trouble
        if self._listener_trouble not in {None, before}:
            way_out = f"it looks every {self._settings.poll_interval:g} s instead"
            self._log("cannot_listen", error=self._listener_trouble, way_out=way_out)

    def _log_unreadable(self) -> None:
        """Log once for each row that cannot be read. What it belongs to is left as it is."""
        for sentence, error in self._controller.store.unreadable.items():
            if sentence not in self._unreadable:
                self._unreadable.add(sentence)
                self._log("unreadable", **{error.kind: error.name}, way_out=error.way_out)

    def _log_store_problem(self, error: StoreProblem, **facts: object) -> None:
        self._log("store_error", **facts, error=error.sentence, way_out=error.way_out)

    def _log_shortage(self, run: Run, why: str) -> None:
        """Log why a call of an agent cannot be started for now."""
        way_out = "nothing is lost: the call is started once the machine can"
        self._log("holding_back", run=run.id, error=why, way_out=way_out)

"""Runs tasks: start, watch, interpret, report."""

import gc
import math
import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property

import msgspec

from adjourn.clarifications import exchange
from adjourn.clarifications.files import left_by
from adjourn.controller.agents import UNMARKED
from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.call import Call, command_of
from adjourn.core.errors import AdjournError, Conflict, NotStarted, StoreOlder, StoreProblem
from adjourn.core.states import TaskState
from adjourn.core.task import TRIES, Run, RunState, Task
from adjourn.ports.leases import Heart
from adjourn.ports.world import Ended, NeverStarted, NewId
from adjourn.process.forks.client import ForkServer
from adjourn.process.processes import About, LocalProcesses, set_aside, supervisor_lock
from adjourn.process.shim import GateShut, Shim, ShimFailed, adopt, is_machines
from adjourn.supervision import workspace_notes
from adjourn.supervision.shims import RUN_KEY, Active, Shims, Warmth
from adjourn.supervision.wait import require_workspace, wait_until
from adjourn.system import lock
from adjourn.system.files import private_directory, write_all
from adjourn.system.poll import CHECK_SECONDS, OUTPUT_SECONDS, Poll
from adjourn.system.run_files import run_directory, runs_directory
from adjourn.system.shortage import is_shortage
from adjourn.system.signals import Signals, deferred_signals

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: only agents have calls beside them
    from adjourn.supervision.agent_calls import Beside

_DIED = "its shim was killed before the gate opened"
_PATIENCE = (0.2, 0.5, 1.0, 3.0)  # seconds between two tries
_AT_ONCE = 2  # requests to stop: the second kills
_NAME = 12  # enough to tell the supervisors of one store apart
_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})
_BRIEFLY = 0.2  # seconds until what failed for the machine's reason is tried again

# Where the run keeps its files, and how often it was told to stop
Watcher = Callable[[str, int], None]


class Supervisor:
    """A process that runs runs and owns their shims. It is alive while it holds its lock."""

    def __init__(
        self,
        controller: Controller,
        forks: ForkServer,
        *,
        root: str,
        new_id: NewId,
        own: str | None,
        about: About,
        tries: int = TRIES,
        start_heart: Callable[[str], Heart] | None = None,
    ) -> None:
        self._controller = controller
        self._shims = Shims(forks, root=root, own=own)
        self._root = root
        self._tries = tries
        self._processes = LocalProcesses(root, left_by=left_by)
        self.name = new_id()[:_NAME]
        private_directory(os.path.join(root, "supervisors"))
        self._lock_path = supervisor_lock(root, self.name)
        self._lock = lock.hold(self._lock_path)
        write_all(self._lock.fileno(), msgspec.json.encode(about))
        self._heart = start_heart(self.name) if start_heart else None
        self._unopened: list[Run] = []
        # Whoever owns this supervisor may want to know these.
        self.on_started: Callable[[], None] = lambda: None
        self.on_shortage: Callable[[Run, str], None] = lambda _run, _why: None

    @property
    def interval(self) -> float:
        """How often to look for what others left.

        A run goes on if it is adopted before the lease of a dead one is over.
        """
        return self._heart.interval if self._heart else math.inf

    @property
    def trouble(self) -> str | None:
        """Why our leases could not be renewed last time, where there are any."""
        return self._heart.trouble if self._heart else None

    def keep_warm(self, warmth: Warmth) -> None:
        """Fork our own agent from where its slow modules are imported already."""
        self._shims.keep_warm(warmth)

    def close(self) -> None:
        """Stop being a supervisor.

        A lock that nobody holds tells the others here that they may settle what was left.
        """
        if self._heart:
            self._heart.close()
        if not (self._heart and self._heart.has_runs):
            with suppress(FileNotFoundError):
                os.unlink(self._lock_path)
        self._lock.close()
        self._shims.close()

    def run(self, task: Task, *, watcher: Watcher | None = None) -> Task:
        """Run a queued task until its process has left, and return how it stands then."""
        with deferred_signals() as signals:
            return self.run_heeding(signals, task, watcher=watcher)

    def run_heeding(self, signals: Signals, task: Task, *, watcher: Watcher | None = None) -> Task:
        """Run a queued task as `run` does, for somebody who counts the requests to stop beyond this task."""
        gc.enable()  # short commands go without; this one may last
        ended = self._run_once(task, signals, watcher)
        while self._has_its_reply(ended):
            if signals.count():
                return self.pause(ended)
            mine = self._claim(ended)
            if mine is None:
                return self._wait_for_another(ended, signals)
            if mine.state is not TaskState.RUNNING:
                return mine
            ended = self._run_once(mine, signals, watcher)
        return ended

    def join(self, signals: Signals, task: Task, *, watcher: Watcher | None = None) -> Task:
        """See a task through that runs already.

        As its supervisor if that one is gone, else until it has left or is gone.
        """
        gc.enable()
        with self._controller.store.read() as view:
            run = view.run(task.id, task.runs)
        active = self._adopted(run)
        return (
            self._watch_to_the_end(active, signals, watcher)
            if active
            else self._see_through(task, run, signals)
        )

    def _adopted(self, run: Run) -> Active | None:
        try:
            return self.adopt(run) if self._can_adopt(run.id) else None
        except Conflict:
            return None  # a worker was faster

    def _see_through(self, task: Task, run: Run, signals: Signals) -> Task:
        """Wait for a task that somebody else runs; what was left without a shim is settled."""

        def look() -> None:
            self._controller.runs.recover()
            if signals.count():
                self.pause(task)

        def is_over(seen: Task) -> bool:
            return seen.state is not TaskState.RUNNING or self._can_adopt(run.id)

        return wait_until(self._controller, task.id, is_over, look=look)

    def _can_adopt(self, name: str) -> bool:
        """Say whether a run has lost its supervisor and still has a shim of this machine."""
        orphan = next((run for run in self._controller.runs.orphans() if run.id == name), None)
        if orphan is None or orphan.shim is None:
            return False
        return self._processes.can_adopt(orphan.id, orphan.shim)

    def _claim(self, task: Task) -> Task | None:
        try:
            claimed = self._controller.runs.claim(task.id, supervisor=self.name)
        except Conflict:
            return None  # a worker was faster
        return claimed.task if isinstance(claimed, Claimed) else claimed

    def pause(self, task: Task) -> Task:
        """Keep a task from going on that left at the very moment in which it was told to stop."""
        try:
            return self._controller.tasks.pause(task.id, by=self._controller.decisions.principal())
        except Conflict:
            return self._controller.decisions.find_task(task.id)  # it has ended

    def _wait_for_another(self, task: Task, signals: Signals) -> Task:
        """Wait until the worker that took the task has it run, and pass on to it that we are told to stop."""

        def look() -> None:
            if signals.count():
                self.pause(task)

        return wait_until(
            self._controller, task.id, lambda seen: seen.state not in _UNDER_WAY, look=look
        )

    def may_run(self, task: Task) -> bool:
        """Say whether a task is there to be run: queued, or claimed for this very supervisor."""
        return (
            task.state is TaskState.QUEUED
            or self._controller.runs.claimed(task.id, supervisor=self.name) is not None
        )

    def _run_once(self, task: Task, signals: Signals, watcher: Watcher | None) -> Task:
        active = self.begin(task, may_start=lambda: not signals.count())
        self.on_started()
        return (
            active if isinstance(active, Task) else self._watch_to_the_end(active, signals, watcher)
        )

    def _watch_to_the_end(self, active: Active, signals: Signals, watcher: Watcher | None) -> Task:
        try:
            self._watch(active, signals, watcher)
        finally:
            active.leave()
        return self._end_patiently(active)

    def _end_patiently(self, active: Active) -> Task:
        """Report how a run ended, also where the database is away for a moment.

        The result is on disk, the lease is renewed.
        """
        for pause in _PATIENCE if self._heart else ():
            with suppress(StoreProblem):
                return self.end(active)
            time.sleep(pause)
        return self.end(active)

    def _has_its_reply(self, task: Task) -> bool:
        """Say whether a task that left to wait was answered while it was leaving, or was given back for another try."""
        if task.state is not TaskState.QUEUED:
            return False
        if task.tries:
            # What it would have started was not what was let through: the next claim finds out what
            # changed
            return True
        with self._controller.store.read() as view:
            return view.run(task.id, task.runs).state is RunState.WAITING

    def can_run(self, task: Task) -> bool:
        """Say whether a task of a shared pool can run on this machine.

        Where its workspace is missing, it is for another.
        """
        return self._heart is None or os.path.isdir(task.spec.workspace)

    def begin(self, task: Task, *, may_start: Callable[[], bool]) -> Active | Task:
        """Take a queued task and open the gate of its run.

        Return the task instead if that has ended already.
        """
        require_workspace(self._controller, task)
        deadline = self._heart.deadline() if self._heart else None
        mine = (
            self._controller.runs.claimed(task.id, supervisor=self.name)
            if task.state is TaskState.RUNNING
            else None
        )
        try:
            claimed = mine or self._controller.runs.claim(task.id, supervisor=self.name)
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            raise _not_started(task, f"its files cannot be read: {error.strerror}") from error
        if isinstance(claimed, Task):
            return claimed  # what was let through has changed: a person is asked again
        try:
            return self._begin(claimed, deadline=deadline, may_start=may_start)
        except StoreProblem:
            self._unopened.append(claimed.run)
            raise

    def _begin(
        self, claimed: Claimed, *, deadline: float | None, may_start: Callable[[], bool]
    ) -> Active | Task:
        try:
            workspace_notes.note_before(self._controller, claimed.task)
            shim = self._started(claimed, deadline=deadline)
        except (ShimFailed, OSError) as error:
            why = error.sentence if isinstance(error, ShimFailed) else error.strerror or str(error)
            if is_machines(error):
                return self._give_back_unstarted(claimed.run, why=why)
            self._controller.runs.fail_to_start(claimed.run, why=why, tries=self._tries)
            sentence = f"task {claimed.task.id} could not be started: {why}"
            raise AdjournError(sentence, way_out=f"adjourn resume {claimed.task.id}") from error
        self._keep_alive(claimed.run, deadline)
        place = run_directory(self._root, claimed.run.id)
        active = Active(claimed.run, shim, place=place, is_driven=claimed.task.spec.is_driven)
        try:
            return self._through_the_gate(active, shim, claimed.call, may_start=may_start)
        except BaseException:
            active.leave()
            self.forget(active)
            raise

    def give_back(self) -> None:
        """Give back the runs whose gate stayed shut because the store failed."""
        while self._unopened:
            with suppress(Conflict):  # somebody else has done so
                self._controller.runs.release(
                    self._unopened[-1], why="the store failed before the gate opened"
                )
            self._unopened.pop()

    def _started(self, claimed: Claimed, *, deadline: float | None) -> Shim:
        """Start the shim of a run from the stored bytes, and from nothing else."""
        command = command_of(claimed.call.body)
        private_directory(runs_directory(self._root))
        place = run_directory(self._root, claimed.run.id)
        set_aside(place)
        private_directory(place)
        answers = exchange.prepare_run(self._controller, self._root, claimed.run, place=place)
        if claimed.task.spec.review:
            answers |= exchange.prepare_feedback(self._controller, claimed.run, place=place)
        key = self._controller.store.run_key(claimed.task.id)
        return self._shims.start(
            claimed,
            place=place,
            argv=command.argv,
            cwd=command.cwd,
            files=command.files,
            env=answers | ({RUN_KEY: key} if key else {}) | command.env,
            grant=claimed.grant,
            deadline=deadline,
        )

    def _through_the_gate(
        self, active: Active, shim: Shim, call: Call, *, may_start: Callable[[], bool]
    ) -> Active | Task:
        if not may_start():
            shim.interrupt()  # at the gate it writes down that nothing was started
            shim.wait(None)
            active.leave()
            return self.end(active)
        deadline = self._heart.deadline() if self._heart else None
        executing = self._controller.runs.execute(active.run, shim=shim.identity)
        if isinstance(executing, Task):  # what let it start is gone: the gate stays shut
            active.leave()
            self.forget(active)
            return executing
        # Its lease is a new one: where a database is slow, the first may be over by now
        self._keep_alive(active.run, deadline)
        try:
            self._controller.agents.mark_start(call, active.run.id)
        except OSError as error:
            # Whatever is wrong with the folder of marks, the task has no part in it
            active.leave()
            return self._give_back_unstarted(active.run, why=f"{UNMARKED}: {error.strerror}")
        try:
            shim.open_gate()
        except GateShut:
            active.leave()
            return self._give_back_unstarted(active.run, why=_DIED)
        # It runs: from here on it is watched, whatever else fails
        with suppress(StoreProblem, OSError):
            exchange.announce_resumed(self._controller, self._root, active.run)
        return active

    def adopt(self, run: Run) -> Active | None:
        """Take over a run whose supervisor is gone and whose shim lives."""
        shim = adopt(run_directory(self._root, run.id), run.shim) if run.shim else None
        if shim is None:
            return None
        deadline = self._heart.deadline() if self._heart else None
        try:
            is_driven = self._controller.decisions.find_task(run.task_id).spec.is_driven
            taken = self._controller.runs.adopt(run, supervisor=self.name)
        except AdjournError:
            shim.close()
            raise
        self._keep_alive(run, deadline)
        active = Active(taken, shim, place=run_directory(self._root, run.id), is_driven=is_driven)
        if is_driven:
            self._adopt_calls(active)
        return active

    def _adopt_calls(self, active: Active) -> None:
        try:
            self._beside.adopt(active)
        except AdjournError:
            self.let_go(active)
            raise

    def tend(self, active: Active) -> bool:
        """See to what runs beside a process; say whether all of the run has left."""
        return self._beside.tend(active) if active.is_driven else active.has_left()

    @cached_property
    def _beside(self) -> "Beside":
        """What runs the calls of agents."""
        from adjourn.supervision.agent_calls import Beside

        return Beside(
            self._controller,
            self._shims,
            root=self._root,
            processes=self._processes,
            heart=self._heart,
            on_shortage=self._report_shortage,
        )

    def _report_shortage(self, active: Active, why: str) -> None:
        """Report why something of a run has to wait, once for each reason."""
        if why not in active.shortages:
            active.shortages.add(why)
            self.on_shortage(active.run, why)

    def _keep_alive(self, run: Run, deadline: float | None) -> None:
        if self._heart and deadline is not None:
            self._heart.watch(run.id, run_directory(self._root, run.id), deadline=deadline)

    def _watch(self, active: Active, signals: Signals, watcher: Watcher | None) -> None:
        with closing(self._controller.store.listen()) as listener:
            wish = self._is_unwanted_still(active, before=False)
            poll = Poll(listener, signals)
            poll.add(active.fileno())
            if active.is_driven:
                # What a person has let through starts before the agent is up
                self._beside.begin(active)
            while True:
                active.heed(signals.count() + wish)
                ready = poll.wait(OUTPUT_SECONDS if watcher else CHECK_SECONDS)
                if watcher:
                    watcher(active.place, active.told)
                if self._has_left(active):
                    return
                if listener.fileno() in ready or not ready:
                    wish = self._is_unwanted_still(active, before=wish)

    def _has_left(self, active: Active) -> bool:
        """Return whether a run has left.

        What the store or the machine lacks may come back while the run lasts.
        """
        try:
            return self.tend(active)
        except StoreProblem as error:
            self._report_shortage(active, error.sentence)
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            self._report_shortage(active, error.strerror or str(error))
        time.sleep(_BRIEFLY)  # its end can be polled already: nothing else would hold us back
        return False

    def _is_unwanted_still(self, active: Active, *, before: bool) -> bool:
        try:
            return active.run.task_id in self.unwanted()
        except StoreProblem:
            return before  # looked at again, as long as the run lasts

    def unwanted(self) -> set[str]:
        """Return the tasks that somebody wants to stop."""
        with self._controller.store.read() as view:
            return view.unwanted()

    def let_go(self, active: Active) -> None:
        """Have nothing to do any more with a run that somebody else has, or soon will.

        What is left of it here is killed.
        """
        active.heed(_AT_ONCE)
        active.leave()
        self.forget(active)

    def forget(self, active: Active) -> None:
        """Renew nothing of a run any more."""
        if self._heart:
            self._heart.forget(active.run.id)

    def end(self, active: Active) -> Task:
        """Report how a run ended whose shim is gone.

        Until that is in the store, nobody else may say what became of it.
        """
        try:
            ended = self._end(active)
        except StoreOlder:
            # Whoever accepts that copy says what becomes of the run: no lease of ours stands
            # against it
            self.forget(active)
            raise
        except StoreProblem:
            raise  # it is told again
        except AdjournError:
            self.forget(active)
            raise
        self.forget(active)
        return ended

    def _end(self, active: Active) -> Task:
        match self._processes.left_behind(active.run.id):
            case Ended(exit=exit):
                exchange.clear_taken(self._controller, self._root, active.run.task_id)
                ended = self._controller.runs.finish(active.run, exit)
                exchange.close_run(self._controller, self._root, ended)
                workspace_notes.note_left(self._controller, ended)
                return ended
            case NeverStarted(why=why, is_refused=is_refused):
                if is_refused:
                    return self._controller.runs.fail_to_start(
                        active.run, why=why, tries=self._tries
                    )
                return self._give_back_unstarted(active.run, why=why or "its gate stayed shut")
            case _ if active.stayed_out:
                return self._give_back_unstarted(active.run, why=_DIED)
            case _:
                return self._controller.runs.lose(active.run)

    def _give_back_unstarted(self, run: Run, *, why: str) -> Task:
        """Give back a run that the machine kept from starting, and raise NotStarted.

        Return the task instead if somebody wants it to stop: then it is not queued again.
        """
        ended = self._controller.runs.release(run, why=why)
        if ended.state is TaskState.QUEUED:
            raise _not_started(ended, why)
        return ended


def _not_started(task: Task, why: str) -> NotStarted:
    sentence = f"this machine could not start task {task.id}: {why}; nothing of it ran, and it stays queued"
    error = NotStarted(sentence, way_out=f"adjourn resume {task.id}")
    error.reason = why
    return error

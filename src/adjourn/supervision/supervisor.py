"""Runs tasks: starts a run, watches it, and reports how it ended."""

import gc
import math
import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec

from adjourn.controller.agents import UNMARKED
from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.backoff import pause_before_try
from adjourn.core.call import Call, command_of
from adjourn.core.errors import AdjournError, Conflict, NotStarted, StoreOlder, StoreProblem
from adjourn.core.outcome import Exit
from adjourn.core.states import TaskState
from adjourn.core.task import TRIES, Run, RunState, Task
from adjourn.ports.leases import RunLeases
from adjourn.ports.world import Ended, NeverStarted, NewId, Vanished
from adjourn.process.forks.client import ForkServer
from adjourn.process.processes import LeftBy, LocalProcesses, set_aside
from adjourn.process.shim import GateShut, Shim, ShimFailed, adopt, is_machines, why_failed
from adjourn.process.supervisors import SupervisorRecord, supervisor_lock
from adjourn.supervision.shims import RUN_KEY, ActiveRun, Shims
from adjourn.supervision.wait import wait_until
from adjourn.supervision.workspace_notes import note_before, note_left, require_workspace
from adjourn.system.files import (
    has_clarifications,
    hold_lock,
    private_directory,
    run_directory,
    runs_directory,
    write_all,
)
from adjourn.system.machine import is_shortage
from adjourn.system.poll import (
    CHECK_SECONDS,
    OUTPUT_SECONDS,
    Poll,
    Signals,
    deferred_signals,
    wait_for_signal,
)

if TYPE_CHECKING:  # only agents have these, and starting a command is a hot path
    from adjourn.process.forks.warm import WarmForks
    from adjourn.supervision.agent_calls import AgentCalls

_DIED = "its shim was killed before the gate opened"
_REPORT_PAUSES = (0.2, 0.5, 1.0, 3.0)  # seconds between two tries to report how a run ended
_NAME = 12  # letters: enough to tell the supervisors of one store apart
_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})
_BRIEFLY = 0.2  # seconds until what failed for the machine's reason is tried again

# The run's directory, and how often it was told to stop
Watcher = Callable[[str, int], None]


class Supervisor:
    """A process that starts runs and owns their shims. It is alive while it holds its lock."""

    def __init__(
        self,
        controller: Controller,
        forks: ForkServer,
        *,
        root: str,
        new_id: NewId,
        own: str,
        about: SupervisorRecord,
        left_by: LeftBy,
        tries: int = TRIES,
        start_leases: Callable[[str], RunLeases] | None = None,
    ) -> None:
        self._controller = controller
        self._shims = Shims(forks, root=root, own=own)
        self._root = root
        self._tries = tries
        self._processes = LocalProcesses(root, left_by=left_by)
        self.name = new_id()[:_NAME]
        private_directory(os.path.join(root, "supervisors"))
        self._lock_path = supervisor_lock(root, self.name)
        self._lock = hold_lock(self._lock_path)
        write_all(self._lock.fileno(), msgspec.json.encode(about))
        self._leases = start_leases(self.name) if start_leases else None
        self._unopened: list[Run] = []
        # The owner of this supervisor may want to know these
        self.on_started: Callable[[], None] = lambda: None
        self.on_shortage: Callable[[Run, str], None] = lambda _run, _why: None
        # When a task may be tried again whose program somebody was writing
        self.retry_at: dict[str, float] = {}

    @property
    def interval(self) -> float:
        """How often to check for runs that others left, in seconds.

        A run goes on if it is adopted before the lease of its dead supervisor is over.
        """
        return self._leases.interval if self._leases else math.inf

    @property
    def trouble(self) -> str | None:
        """Why our leases could not be renewed last time, where there are any."""
        return self._leases.trouble if self._leases else None

    def keep_warm(self, warm_forks: "WarmForks", *, runner: str) -> None:
        """Fork the drivers of a runner from where its slow modules are imported already."""
        self._shims.warm_forks, self._shims.warm_runner = warm_forks, runner

    def close(self) -> None:
        """Stop being a supervisor.

        A lock that nobody holds tells the others here that they may settle what was left.
        """
        if self._leases:
            self._leases.close()
        if not (self._leases and self._leases.has_runs):
            with suppress(FileNotFoundError):
                os.unlink(self._lock_path)
        self._lock.close()
        self._shims.close()

    # --- one task, from its start until it waits or has ended -------------------------------------

    def run(self, task: Task, *, watcher: Watcher | None = None) -> Task:
        """Run a queued task until its process has left, and return the task as it is then."""
        with deferred_signals() as signals:
            return self.run_with_signals(signals, task, watcher=watcher)

    def run_with_signals(
        self, signals: Signals, task: Task, *, watcher: Watcher | None = None
    ) -> Task:
        """Run a queued task as `run` does, for a caller that counts signals beyond this task."""
        # Short commands go without collections; this one may last. What was imported is left out
        # of them: there is nothing to free (bench resume)
        gc.freeze()
        gc.enable()
        while True:
            begun = self.begin(task, may_start=lambda: not signals.count())
            self.on_started()
            ended = begun if isinstance(begun, Task) else self._watch(begun, signals, watcher)

            # It may have been answered while it was leaving: then it goes on at once
            if not self._is_queued_again(ended):
                return ended
            if again_at := self.retry_at.pop(ended.id, 0.0):
                wait_for_signal(signals, seconds=again_at - time.monotonic())
            if signals.count():
                return self.pause(ended)
            try:
                claimed = self._controller.runs.claim(ended.id, supervisor=self.name)
            except Conflict:  # a worker was faster: wait for it, and pass on requests to stop
                return wait_until(
                    self._controller,
                    ended.id,
                    lambda seen: seen.state not in _UNDER_WAY,
                    look=partial(self._pause_if, signals, ended),
                )
            task = claimed.task if isinstance(claimed, Claimed) else claimed
            if task.state is not TaskState.RUNNING:
                return task

    def join(self, signals: Signals, task: Task, *, watcher: Watcher | None = None) -> Task:
        """Watch a task that runs already until it has left.

        As its supervisor if that one is gone. Return also when its supervisor goes meanwhile.
        """
        gc.freeze()
        gc.enable()
        with self._controller.store.read() as view:
            run = view.run(task.id, task.runs)
        active: ActiveRun | None = None
        if self._can_adopt(run.id):
            with suppress(Conflict):  # a worker was faster
                active = self.adopt(run)
        if active:
            return self._watch(active, signals, watcher)

        # Somebody else runs it; what was left without a shim is settled
        def look() -> None:
            self._controller.runs.recover()
            self._pause_if(signals, task)

        def is_over(seen: Task) -> bool:
            return seen.state is not TaskState.RUNNING or self._can_adopt(run.id)

        return wait_until(self._controller, task.id, is_over, look=look)

    def may_run(self, task: Task) -> bool:
        """Return whether a task is queued, or claimed for this very supervisor."""
        return (
            task.state is TaskState.QUEUED
            or self._controller.runs.claimed(task.id, supervisor=self.name) is not None
        )

    def pause(self, task: Task) -> Task:
        """Pause a task that left at the very moment in which it was told to stop."""
        try:
            return self._controller.tasks.pause(task.id, by=self._controller.decisions.principal())
        except Conflict:
            return self._controller.decisions.find_task(task.id)  # it has ended

    def _pause_if(self, signals: Signals, task: Task) -> None:
        if signals.count():
            self.pause(task)

    def _can_adopt(self, run_id: str) -> bool:
        """Return whether a run has lost its supervisor and still has a shim of this machine."""
        orphan = next((run for run in self._controller.runs.orphans() if run.id == run_id), None)
        if orphan is None or orphan.shim is None:
            return False
        return self._processes.can_adopt(orphan.id, orphan.shim)

    def _is_queued_again(self, task: Task) -> bool:
        """Return whether a task was answered while it was leaving, or given back to be retried."""
        if task.state is not TaskState.QUEUED:
            return False
        if task.tries:
            return True  # a file was another than the approved one: the next claim finds out which
        with self._controller.store.read() as view:
            return view.run(task.id, task.runs).state is RunState.WAITING

    # --- a run begins -----------------------------------------------------------------------------

    def can_run(self, task: Task) -> bool:
        """Return whether a task of a shared pool can run on this machine.

        Where its workspace is missing, it is for another.
        """
        return self._leases is None or os.path.isdir(task.spec.workspace)

    def begin(self, task: Task, *, may_start: Callable[[], bool]) -> ActiveRun | Task:
        """Claim a queued task, start its shim, and open the gate.

        Return the task instead if the run has ended already. NotStarted means that the machine
        could not start it: nothing of it ran, and it stays queued.
        """
        require_workspace(self._controller, task)
        deadline = self._leases.deadline() if self._leases else None
        claimed: Claimed | Task | None = None
        if task.state is TaskState.RUNNING:
            claimed = self._controller.runs.claimed(task.id, supervisor=self.name)
        try:
            claimed = claimed or self._controller.runs.claim(task.id, supervisor=self.name)
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            raise _not_started(task, f"its files cannot be read: {error.strerror}") from error
        if isinstance(claimed, Task):
            return claimed  # what was approved has changed: a person is asked again

        run = claimed.run
        directory = run_directory(self._root, run.id)
        try:
            try:
                note_before(self._controller, claimed.task)
                shim = self._start_shim(claimed, directory=directory, deadline=deadline)
            except (ShimFailed, OSError) as error:
                why = why_failed(error)
                if is_machines(error):
                    return self._give_back_unstarted(run, why=why)
                self._controller.runs.fail_to_start(run, why=why, tries=self._tries)
                sentence = f"task {task.id} could not be started: {why}"
                raise AdjournError(sentence, way_out=f"adjourn resume {task.id}") from error
            self._renew(run, deadline)
            is_driven = claimed.task.spec.is_driven
            active = ActiveRun(run, shim, directory=directory, is_driven=is_driven)
            try:
                return self._open_gate(active, shim, claimed.call, may_start=may_start)
            except BaseException:
                active.close()
                self.stop_renewing(run)
                raise
        except StoreProblem:
            self._unopened.append(run)
            raise

    def _start_shim(self, claimed: Claimed, *, directory: str, deadline: float | None) -> Shim:
        """Start the shim of a run from the stored bytes, and from nothing else."""
        run, command = claimed.run, command_of(claimed.call.body)
        private_directory(runs_directory(self._root))
        set_aside(directory)
        private_directory(directory)
        answers: dict[str, str] = {}
        if has_clarifications(self._root) or claimed.task.spec.review:
            # Most tasks ask nothing by files (bench resume)
            from adjourn.clarifications import exchange

            answers = exchange.prepare_run(self._controller, self._root, run, place=directory)
            if claimed.task.spec.review:
                answers |= exchange.prepare_feedback(self._controller, run, place=directory)
        key = self._controller.store.run_key(claimed.task.id)
        return self._shims.start(
            claimed,
            directory=directory,
            argv=command.argv,
            cwd=command.cwd,
            files=command.files,
            env=answers | ({RUN_KEY: key} if key else {}) | command.env,
            grant=claimed.grant,
            deadline=deadline,
        )

    def _open_gate(
        self, active: ActiveRun, shim: Shim, call: Call, *, may_start: Callable[[], bool]
    ) -> ActiveRun | Task:
        """Let the command start, once the store and the disk know that it will.

        The order is the promise. First the store has the call as executing, by this shim. Then its
        mark is on disk, which outlives a store that is set back. Only then is the gate opened. So a
        call whose gate was opened is never started again by anybody who does not know of it.
        """
        if not may_start():
            active.stop(1)  # at the gate it writes down that nothing was started
            shim.leave_gate()
            active.close()
            return self.end(active)
        deadline = self._leases.deadline() if self._leases else None
        executing = self._controller.runs.execute(active.run, shim=shim.identity)
        if isinstance(executing, Task):  # what let it start is gone: the gate stays shut
            active.close()
            self.stop_renewing(active.run)
            return executing
        # Its lease is a new one: where a database is slow, the first may be over by now
        self._renew(active.run, deadline)
        try:
            self._controller.agents.mark_start(call, active.run.id)
        except OSError as error:
            # Whatever is wrong with the folder of marks, the task has no part in it
            active.close()
            return self._give_back_unstarted(active.run, why=f"{UNMARKED}: {error.strerror}")
        try:
            shim.open_gate()
        except GateShut:
            active.close()
            return self._give_back_unstarted(active.run, why=_DIED)
        # It runs: from here on it is watched, whatever else fails
        if has_clarifications(self._root):
            from adjourn.clarifications import exchange  # as above

            with suppress(StoreProblem, OSError):
                exchange.announce_resumed(self._controller, self._root, active.run)
        return active

    def give_back(self) -> None:
        """Give back the runs whose gate stayed shut because the store failed."""
        while self._unopened:
            with suppress(Conflict):  # somebody else has done so
                self._controller.runs.release(
                    self._unopened[-1], why="the store failed before the gate opened"
                )
            self._unopened.pop()

    def _give_back_unstarted(self, run: Run, *, why: str) -> Task:
        """Give back a run that the machine kept from starting, and raise NotStarted.

        Return the task instead if somebody wants it to stop: then it is not queued again.
        """
        ended = self._controller.runs.release(run, why=why)
        if ended.state is TaskState.QUEUED:
            raise _not_started(ended, why)
        return ended

    def adopt(self, run: Run) -> ActiveRun | None:
        """Take over a run whose supervisor is gone and whose shim lives."""
        directory = run_directory(self._root, run.id)
        shim = adopt(directory, run.shim) if run.shim else None
        if shim is None:
            return None
        deadline = self._leases.deadline() if self._leases else None
        try:
            is_driven = self._controller.decisions.find_task(run.task_id).spec.is_driven
            taken = self._controller.runs.adopt(run, supervisor=self.name)
        except AdjournError:
            shim.close()
            raise
        self._renew(run, deadline)
        active = ActiveRun(taken, shim, directory=directory, is_driven=is_driven)
        if is_driven:
            try:
                self._agent_calls.adopt(active)
            except AdjournError:
                self.abandon(active)
                raise
        return active

    # --- a run lasts ------------------------------------------------------------------------------

    def _watch(self, active: ActiveRun, signals: Signals, watcher: Watcher | None) -> Task:
        """Watch a run until all of it has left, and report how it ended."""
        try:
            with closing(self._controller.store.listen()) as listener:
                wish = self._has_stop_request(active, before=False)
                poll = Poll(listener, signals)
                poll.add(active.fileno())
                if active.is_driven:
                    self._agent_calls.begin(active)  # what was approved starts before the agent
                while True:
                    active.stop(signals.count() + wish)
                    ready = poll.wait(OUTPUT_SECONDS if watcher else CHECK_SECONDS)
                    if watcher:
                        watcher(active.directory, active.stop_requests)
                    if self._try_to_advance(active):
                        break
                    if listener.fileno() in ready or not ready:
                        wish = self._has_stop_request(active, before=wish)
        finally:
            active.close()

        # The result is on disk and the lease is renewed: a database that is away for a moment
        # takes nothing from it
        for pause in _REPORT_PAUSES if self._leases else ():
            with suppress(StoreProblem):
                return self.end(active)
            time.sleep(pause)
        return self.end(active)

    def advance(self, active: ActiveRun) -> bool:
        """Start and conclude the calls of an agent; return whether all of the run has left."""
        return self._agent_calls.advance(active) if active.is_driven else active.notice_exit()

    def _try_to_advance(self, active: ActiveRun) -> bool:
        """Advance a run. What the store or the machine lacks may come back while the run lasts."""
        try:
            return self.advance(active)
        except StoreProblem as error:
            self._report_shortage(active, error.sentence)
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            self._report_shortage(active, error.strerror or str(error))
        time.sleep(_BRIEFLY)  # its end can be polled already: nothing else would hold us back
        return False

    @cached_property
    def _agent_calls(self) -> "AgentCalls":
        # Only agents have calls, and starting a command is a hot path
        from adjourn.supervision.agent_calls import AgentCalls

        return AgentCalls(
            self._controller,
            self._shims,
            root=self._root,
            processes=self._processes,
            leases=self._leases,
            on_shortage=self._report_shortage,
        )

    def _report_shortage(self, active: ActiveRun, why: str) -> None:
        """Report why something of a run has to wait, once for each reason."""
        if why not in active.shortages:
            active.shortages.add(why)
            self.on_shortage(active.run, why)

    def _has_stop_request(self, active: ActiveRun, *, before: bool) -> bool:
        try:
            return active.run.task_id in self.tasks_to_stop()
        except StoreProblem:
            return before  # checked again, as long as the run lasts

    def tasks_to_stop(self) -> set[str]:
        """Return the tasks that somebody wants to stop."""
        with self._controller.store.read() as view:
            return view.unwanted()

    def _renew(self, run: Run, deadline: float | None) -> None:
        if self._leases and deadline is not None:
            self._leases.watch(run.id, run_directory(self._root, run.id), deadline=deadline)

    def stop_renewing(self, run: Run) -> None:
        """Let the lease of a run end, so that somebody else may settle it."""
        if self._leases:
            self._leases.forget(run.id)

    def abandon(self, active: ActiveRun) -> None:
        """Kill what is left here of a run that somebody else has, or soon will."""
        active.kill()
        active.close()
        self.stop_renewing(active.run)

    # --- a run ends -------------------------------------------------------------------------------

    def end(self, active: ActiveRun) -> Task:
        """Report how a run ended whose shim is gone.

        Until that is in the store, its lease is renewed, so that nobody else settles it. After a
        StoreProblem it is reported again.
        """
        try:
            ended = self._settle(active)
        except StoreOlder:
            # The person who accepts that copy settles the run: no lease of ours prevents it
            self.stop_renewing(active.run)
            raise
        except StoreProblem:
            raise
        except AdjournError:
            self.stop_renewing(active.run)
            raise
        self.stop_renewing(active.run)
        return ended

    def _settle(self, active: ActiveRun) -> Task:
        run = active.run
        state = self._processes.left_behind(run.id)
        if isinstance(state, Vanished) and active.stop_requests and active.has_never_started():
            # It was stopped, and killed before it could write down that it was interrupted
            state = Ended(Exit(interrupted=True))
        match state:
            case Ended(exit=exit):
                if not has_clarifications(self._root):
                    ended = self._controller.runs.finish(run, exit)
                else:
                    from adjourn.clarifications import exchange  # as above

                    exchange.clear_taken(self._controller, self._root, run.task_id)
                    ended = self._controller.runs.finish(run, exit)
                    exchange.close_run(self._controller, self._root, ended)
                note_left(self._controller, ended)
                return ended
            case NeverStarted(why=why, is_busy=True):
                tried = self._controller.runs.fail_to_start(run, why=why, tries=self._tries)
                if tried.state is TaskState.QUEUED:
                    pause = pause_before_try(tried.tries)
                    self.retry_at[tried.id] = time.monotonic() + pause
                    self.on_shortage(run, f"{why}; it is tried again in {pause:g} s")
                return tried
            case NeverStarted(why=why, is_refused=is_refused):
                if is_refused:
                    return self._controller.runs.fail_to_start(run, why=why, tries=self._tries)
                return self._give_back_unstarted(run, why=why or "its gate stayed shut")
            case _ if active.has_never_started():
                return self._give_back_unstarted(run, why=_DIED)
            case _:
                return self._controller.runs.lose(run)


def _not_started(task: Task, why: str) -> NotStarted:
    what = f"this machine could not start task {task.id}: {why}"
    sentence = f"{what}; nothing of it ran, and it stays queued"
    error = NotStarted(sentence, way_out=f"adjourn resume {task.id}")
    error.reason = why
    return error

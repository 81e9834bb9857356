"""Runs the calls of agents beside them, one at a time, each in a shim of its own."""

import time
from collections.abc import Callable

from adjourn.controller.agents import UNMARKED
from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.agent.calls import CallResult, files_of
from adjourn.core.backoff import backoff, pause_before_try
from adjourn.core.call import Call, arguments_of
from adjourn.core.errors import StoreProblem
from adjourn.core.policy.commands import steps_of, words_of
from adjourn.core.task import TRIES, Run
from adjourn.ports.leases import RunLeases
from adjourn.ports.world import NeverStarted, ShimState, StillRuns
from adjourn.process.processes import LocalProcesses, set_aside
from adjourn.process.shim import GateShut, Shim, ShimFailed, adopt, is_machines, why_failed
from adjourn.supervision.shims import RUN_KEY, ActiveRun, RunningCall, Shims
from adjourn.system.files import private_directory, run_directory
from adjourn.system.machine import is_shortage

# Seconds between two tries to start a call on a machine that lacks something
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_GATE_SHUT = "its shim was killed before the gate opened"
COMMAND_SECONDS = 600.0  # for a command whose call does not say how long it may take

OnShortage = Callable[[ActiveRun, str], None]  # whose calls cannot be started for now, and why


class AgentCalls:
    """Runs the calls of the agents of one supervisor."""

    def __init__(
        self,
        controller: Controller,
        shims: Shims,
        *,
        root: str,
        processes: LocalProcesses,
        leases: RunLeases | None,
        on_shortage: OnShortage,
    ) -> None:
        self._controller = controller
        self._shims = shims
        self._root = root
        self._processes = processes
        self._leases = leases
        self._on_shortage = on_shortage

    def adopt(self, active: ActiveRun) -> None:
        """Take over the call of an agent whose supervisor is gone."""
        for call in self._controller.agents.executions(active.run.task_id):
            directory = run_directory(self._root, call.place)
            shim = adopt(directory, call.shim) if call.shim else None
            if shim:
                adopted = self._controller.agents.adopt_call(active.run, call)
                active.add_call(RunningCall(adopted, shim, directory=directory))
                self._renew(active.run, directory)
                continue
            state = self._controller.agents.state_of(call)
            if not isinstance(state, StillRuns):  # else its lock is held in another PID namespace
                self._controller.agents.conclude_call(active.run, call, state)

    def advance(self, active: ActiveRun) -> bool:
        """Conclude the call that has left and start the next; return whether the run has left."""
        try:
            if active.is_in_doubt:
                # Give back what was about to run when the store failed: its gate stayed shut
                for call in self._controller.agents.executions(active.run.task_id):
                    if active.call is None or call.number != active.call.call.number:
                        self._controller.agents.release_call(active.run, call)
                active.is_in_doubt = False
            if active.call and active.call.is_gone():
                self._conclude(active, active.call)
            if active.notice_exit():
                return active.call is None
            is_due = not active.stop_requests and time.monotonic() >= active.retry_at
            if active.call is None and is_due:
                self.begin(active)
        except StoreProblem:
            active.is_in_doubt = True
            raise
        return False

    def begin(self, active: ActiveRun) -> None:
        """Start the next call of an agent, if one is ready.

        A call that the machine could not start is given back and tried again later: it is not a
        failed call. Where something else keeps it from starting, it is tried a few times.
        """
        run = active.run
        call = self._controller.agents.next_execution(run.task_id)
        try:
            claimed = self._controller.agents.claim_call(run, call) if call else None
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            # Whether its files have changed is not known
            self._retry_later(active, f"its files cannot be read: {error.strerror}")
            return
        if claimed is None:
            return
        directory = run_directory(self._root, claimed.place)
        try:
            shim = self._start_shim(run, claimed, directory=directory)
        except (ShimFailed, OSError) as error:
            if not is_machines(error):
                active.failed_starts += 1
            why = why_failed(error)
            if active.failed_starts < TRIES:
                self._controller.agents.release_call(run, claimed)
                self._retry_later(active, why)
                return
            active.failed_starts = 0
            result = CallResult(ok=False, error=f"it could not be started in {TRIES} tries: {why}")
            self._controller.agents.finish_call(run, claimed, result)
            return
        running = RunningCall(claimed, shim, directory=directory)
        self._renew(run, directory)
        self._open_gate(active, running, shim)

    def _start_shim(self, run: Run, call: Call, *, directory: str) -> Shim:
        """Start the shim of an agent's call from the stored bytes, and from nothing else."""
        with self._controller.store.read() as view:
            task = view.task(run.task_id)
        arguments = arguments_of(call.body)
        # A command runs as it is; every other tool of ours runs in a process of adjourn
        argv = words_of(call.tool, arguments) if steps_of(call.tool, arguments) else ()
        timeout: float | None = None
        if argv:
            wanted = arguments.get("timeout")
            timeout = float(wanted) if isinstance(wanted, int | float) else COMMAND_SECONDS
        set_aside(directory)
        private_directory(directory)
        key = self._controller.store.run_key(task.id)
        return self._shims.start(
            Claimed(task=task, run=run, call=call),
            directory=directory,
            argv=argv or ("adjourn", "_tool", call.id),
            cwd=task.spec.workspace,
            files=files_of(call.body) if argv else {},
            # A run id of its own tells what it leaves behind from what its agent does
            env={"ADJOURN_RUN_ID": call.place} | ({RUN_KEY: key} if key else {}),
            timeout=timeout,
            deadline=self._leases.deadline_of(run.id) if self._leases else None,
        )

    def _open_gate(self, active: ActiveRun, running: RunningCall, shim: Shim) -> None:
        """Let the call start, once the store and the disk know that it will."""
        call = running.call
        try:
            if self._controller.agents.execute_call(active.run, call, shim=shim.identity) is None:
                running.close()
                return
            try:
                self._controller.agents.mark_start(call, call.place)
            except OSError as error:
                # Whatever is wrong with the folder of marks, the call has no part in it
                running.close()
                self._controller.agents.release_call(active.run, call)
                self._retry_later(active, f"{UNMARKED}: {error.strerror}")
                return
            shim.open_gate()
        except GateShut:
            running.close()
            self._controller.agents.release_call(active.run, call)
            self._retry_later(active, _GATE_SHUT)
        except BaseException:
            running.close()
            raise
        else:
            active.add_call(running)
            active.failed_starts = 0

    def _conclude(self, active: ActiveRun, running: RunningCall) -> None:
        left: ShimState = NeverStarted()
        if not running.has_never_started():
            left = self._processes.left_behind(running.call.place)
        self._controller.agents.conclude_call(active.run, running.call, left)
        if isinstance(left, NeverStarted):
            self._retry_later(active, left.why or _GATE_SHUT)
            if left.is_busy:
                pause = pause_before_try(running.call.attempt)
                active.retry_at = time.monotonic() + pause
        else:
            active.retries = 0
            active.shortages.clear()
        active.remove_call(running)  # only now: should the store have failed, it is told again

    def _retry_later(self, active: ActiveRun, why: str) -> None:
        """Try the next call later, and later still the next time; report each reason once."""
        active.retries += 1
        pause = backoff(active.retries, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        active.retry_at = time.monotonic() + pause
        self._on_shortage(active, why)

    def _renew(self, run: Run, directory: str) -> None:
        """Hand the shim of a call the deadlines of its run, beginning with the last one."""
        if self._leases:
            self._leases.watch(run.id, directory, deadline=self._leases.deadline_of(run.id))

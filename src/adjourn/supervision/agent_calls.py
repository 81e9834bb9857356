"""Runs the calls of agents beside them, one at a time, each in a shim of its own."""

import time
from collections.abc import Callable, Mapping

from adjourn.controller.agents import UNMARKED
from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.agent.calls import CallResult, files_of
from adjourn.core.call import Call, Json, arguments_of
from adjourn.core.errors import StoreProblem
from adjourn.core.policy.commands import steps_of, words_of
from adjourn.core.task import TRIES, Run
from adjourn.ports.leases import Heart
from adjourn.ports.world import NeverStarted, StillRuns
from adjourn.process.processes import LocalProcesses, set_aside
from adjourn.process.shim import GateShut, Shim, ShimFailed, adopt, is_machines
from adjourn.supervision.shims import FIRST_PAUSE, RUN_KEY, Active, Execution, Shims
from adjourn.system.files import private_directory
from adjourn.system.run_files import run_directory
from adjourn.system.shortage import is_shortage

_LONGEST_PAUSE = 15.0  # seconds between two tries to start a call on a machine that lacks something
_GATE_SHUT = "its shim was killed before the gate opened"
COMMAND_SECONDS = 600.0  # for a command of an agent that does not say how long it may take

OnShortage = Callable[[Active, str], None]  # whose calls cannot be started for now, and why


class Beside:
    """What runs beside the agents of one supervisor."""

    def __init__(
        self,
        controller: Controller,
        shims: Shims,
        *,
        root: str,
        processes: LocalProcesses,
        heart: Heart | None,
        on_shortage: OnShortage,
    ) -> None:
        self._controller = controller
        self._shims = shims
        self._root = root
        self._processes = processes
        self._heart = heart
        self._on_shortage = on_shortage

    def adopt(self, active: Active) -> None:
        """Take over what runs beside an agent whose supervisor is gone."""
        for call in self._controller.agents.executions(active.run.task_id):
            self._adopt_call(active, call)

    def _adopt_call(self, active: Active, call: Call) -> None:
        place = run_directory(self._root, call.place)
        shim = adopt(place, call.shim) if call.shim else None
        if shim:
            active.begin(
                Execution(self._controller.agents.adopt_call(active.run, call), shim, place=place)
            )
            self._keep_alive(active.run, place)
            return
        state = self._controller.agents.state_of(call)
        if not isinstance(state, StillRuns):  # else its lock is held in another PID namespace
            self._controller.agents.conclude_call(active.run, call, state)

    def tend(self, active: Active) -> bool:
        """See to what runs beside an agent; say whether all of the run has left."""
        try:
            return self._tend(active)
        except StoreProblem:
            active.is_in_doubt = True
            raise

    def _tend(self, active: Active) -> bool:
        if active.is_in_doubt:
            self._give_back(active)
        if active.execution and active.execution.is_gone:
            self._end(active, active.execution)
        if active.has_left():
            return active.execution is None
        if active.execution is None and not active.told and time.monotonic() >= active.retry_at:
            self.begin(active)
        return False

    def _give_back(self, active: Active) -> None:
        """Give back what was about to run when the store failed: its gate stayed shut."""
        for call in self._controller.agents.executions(active.run.task_id):
            if active.execution is None or call.number != active.execution.call.number:
                self._controller.agents.release_call(active.run, call)
        active.is_in_doubt = False

    def begin(self, active: Active) -> None:
        """Start the next call of an agent, if one is ready.

        A call that the machine could not start is given back and tried again later: it is not a
        failed call. Where something else keeps it from starting, it is tried a few times.
        """
        call = self._controller.agents.next_execution(active.run.task_id)
        try:
            claimed = self._controller.agents.claim_call(active.run, call) if call else None
        except OSError as error:
            if not is_shortage(error.errno):
                raise
            # Whether its files have changed is not known.
            self._retry_later(active, f"its files cannot be read: {error.strerror}")
            return
        if claimed is None:
            return
        try:
            shim = self._started(active.run, claimed)
        except (ShimFailed, OSError) as error:
            if not is_machines(error):
                active.failed_starts += 1
            why = error.sentence if isinstance(error, ShimFailed) else error.strerror or str(error)
            if active.failed_starts < TRIES:
                self._controller.agents.release_call(active.run, claimed)
                self._retry_later(active, why)
                return
            active.failed_starts = 0
            result = CallResult(ok=False, error=f"it could not be started in {TRIES} tries: {why}")
            self._controller.agents.finish_call(active.run, claimed, result)
            return
        execution = Execution(claimed, shim, place=run_directory(self._root, claimed.place))
        self._keep_alive(active.run, execution.place)
        self._let_through(active, execution, shim)

    def _started(self, run: Run, call: Call) -> Shim:
        """Start the shim of an agent's call from the stored bytes, and from nothing else."""
        with self._controller.store.read() as view:
            task = view.task(run.task_id)
        arguments = arguments_of(call.body)
        words = words_of(call.tool, arguments) if steps_of(call.tool, arguments) else ()
        key = self._controller.store.run_key(task.id)
        return self._shims.start(
            Claimed(task=task, run=run, call=call),
            place=self._room_for(call),
            argv=words or ("adjourn", "_tool", call.id),
            cwd=task.spec.workspace,
            files=files_of(call.body) if words else {},
            # By its own name of the run what it leaves behind is told from its agent's.
            env={"ADJOURN_RUN_ID": call.place} | ({RUN_KEY: key} if key else {}),
            timeout=_timeout(arguments) if words else None,
            deadline=self._heart.deadline_of(run.id) if self._heart else None,
        )

    def _room_for(self, call: Call) -> str:
        place = run_directory(self._root, call.place)
        set_aside(place)
        return private_directory(place)

    def _let_through(self, active: Active, execution: Execution, shim: Shim) -> None:
        call = execution.call
        try:
            if self._controller.agents.execute_call(active.run, call, shim=shim.identity) is None:
                execution.leave()
                return
            try:
                self._controller.agents.mark_start(call, call.place)
            except OSError as error:
                # Whatever is wrong with the folder of marks, the call has no part in it
                execution.leave()
                self._controller.agents.release_call(active.run, call)
                self._retry_later(active, f"{UNMARKED}: {error.strerror}")
                return
            shim.open_gate()
        except GateShut:
            execution.leave()
            self._controller.agents.release_call(active.run, call)
            self._retry_later(active, _GATE_SHUT)
        except BaseException:
            execution.leave()
            raise
        else:
            active.begin(execution)
            active.failed_starts = 0

    def _retry_later(self, active: Active, why: str) -> None:
        """Try the next call later, and later still the next time; report each reason once."""
        active.retry_pause = min(2 * active.retry_pause, _LONGEST_PAUSE)
        active.retry_at = time.monotonic() + active.retry_pause
        self._on_shortage(active, why)

    def _end(self, active: Active, execution: Execution) -> None:
        left = (
            NeverStarted()
            if execution.stayed_out
            else self._processes.left_behind(execution.call.place)
        )
        self._controller.agents.conclude_call(active.run, execution.call, left)
        if isinstance(left, NeverStarted):
            self._retry_later(active, left.why or _GATE_SHUT)
        else:
            active.retry_pause = FIRST_PAUSE
            active.shortages.clear()
        active.end(execution)  # only now: should the store have failed, it is told again

    def _keep_alive(self, run: Run, place: str) -> None:
        """Hand what runs beside an agent the deadlines of its run, beginning with the last that was handed over."""
        if self._heart:
            self._heart.watch(run.id, place, deadline=self._heart.deadline_of(run.id))


def _timeout(arguments: Mapping[str, Json]) -> float:
    """Return how long a command of an agent may take, as its call says."""
    wanted = arguments.get("timeout")
    return float(wanted) if isinstance(wanted, int | float) else COMMAND_SECONDS

"""Runs one task: start, watch, interpret, report."""

import gc
import os
import select
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from adjourn.controller import Claimed, Controller
from adjourn.core.call import Call, command_of
from adjourn.core.errors import AdjournError, CannotResume
from adjourn.core.states import TaskState
from adjourn.core.task import Run, Task
from adjourn.files import private_directory
from adjourn.ports import Ended, NeverStarted, NewId
from adjourn.process import lock
from adjourn.process.forkserver import ForkServer
from adjourn.process.local import LocalProcesses, run_directory, supervisor_lock
from adjourn.process.shim import GateShut, Shim, ShimFailed, ShimSpec, adopt

_LOOK_MS = 2_000  # repairs a lost wake-up; everything else is an event
OUTPUT_MS = 100
_NAME = 12  # enough to tell the supervisors of one store apart
_PAUSE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Watcher = Callable[[str], None]


class Supervisor:
    """The process that runs one run of a task and owns its shim."""

    def __init__(self, controller: Controller, forks: ForkServer, *, root: str, new_id: NewId, path: str | None) -> None:
        self._controller = controller
        self._forks = forks
        self._root = root
        self._path = path
        self._processes = LocalProcesses(root)
        self._name = new_id()[:_NAME]
        private_directory(os.path.join(root, "supervisors"))
        self._lock_path = supervisor_lock(root, self._name)
        self._lock = lock.hold(self._lock_path)

    def close(self) -> None:
        """Stop being a supervisor."""
        with suppress(FileNotFoundError):
            os.unlink(self._lock_path)
        self._lock.close()
        self._forks.close()

    def run(self, task: Task, *, watcher: Watcher | None = None) -> Task:
        """Run a queued task until its process has left, and return how it stands then."""
        gc.enable()  # short commands go without; this one may last
        require_workspace(task)
        with _deferred_signals() as signals:
            claimed = self._controller.claim(task.id, supervisor=self._name)
            shim = self._prepare(claimed)
            try:
                return self._through_the_gate(claimed.run, shim, signals, watcher)
            finally:
                shim.close()

    def _prepare(self, claimed: Claimed) -> Shim:
        try:
            return self._forks.fork_shim(self._spec(claimed))
        except (ShimFailed, OSError) as error:
            self._controller.release(claimed.run, why=str(error))
            sentence = f"task {claimed.task.id} could not be started: {error}"
            raise AdjournError(sentence, way_out=f"adjourn resume {claimed.task.id}") from error

    def _spec(self, claimed: Claimed) -> ShimSpec:
        """Build what the shim starts from the stored bytes, and from nothing else."""
        command = command_of(claimed.call.body)
        private_directory(os.path.join(self._root, "runs"))
        place = private_directory(run_directory(self._root, claimed.run.id))
        return ShimSpec(
            run_dir=place,
            argv=command.argv,
            cwd=command.cwd,
            env=child_environment(os.environ, claimed.run, claimed.call, root=self._root, path=self._path) | command.env,
            grace=claimed.task.spec.grace,
        )

    def _through_the_gate(self, run: Run, shim: Shim, signals: "Signals", watcher: Watcher | None) -> Task:
        if signals.taken():
            shim.interrupt()  # at the gate it writes down that nothing was started
            shim.wait(None)
            return self._report(run)
        self._controller.execute(run, shim=shim.identity)
        try:
            shim.open_gate()
        except GateShut:
            return self._controller.release(run, why="its shim died before the gate opened")
        self._watch(run, shim, signals, watcher)
        return self._report(run)

    def _watch(self, run: Run, shim: Shim, signals: "Signals", watcher: Watcher | None) -> None:
        ear = self._controller.store.listen()
        wish = self._wish(run)
        poll = select.poll()
        for source in (shim.fileno(), signals.fileno(), ear.fileno()):
            poll.register(source, select.POLLIN)
        place = run_directory(self._root, run.id)
        told = 0
        try:
            while True:
                wanted = signals.taken() + wish
                told = _tell_shim(shim, told=told, wanted=wanted)
                ready = {fd for fd, _ in poll.poll(OUTPUT_MS if watcher else _LOOK_MS)}
                if watcher:
                    watcher(place)
                if shim.fileno() in ready:
                    return
                if ear.fileno() in ready or not ready:
                    ear.drain()
                    wish = self._wish(run)
        finally:
            ear.close()

    def _wish(self, run: Run) -> bool:
        with self._controller.store.read() as view:
            return view.task(run.task_id).wish is not None

    def _report(self, run: Run) -> Task:
        match self._processes.left_behind(run.id):
            case Ended(exit=exit):
                return self._controller.finish(run, exit)
            case NeverStarted():
                return self._controller.release(run, why="it was never started")
            case _:
                return self._controller.lose(run)


def _tell_shim(shim: Shim, *, told: int, wanted: int) -> int:
    """Forward one interrupt for the first request, and kill at the second. Return how many requests are served."""
    if wanted and not told:
        shim.interrupt()
    elif wanted > 1 and told == 1:
        shim.kill()
    return min(wanted, 2)


class Signals:
    """Counts the requests to stop, and can be polled for them."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._count = 0

    def fileno(self) -> int:
        """Return what to poll."""
        return self._fd

    def taken(self) -> int:
        """Return how often we were told to stop."""
        with suppress(BlockingIOError):
            self._count += len(os.read(self._fd, 64))
        return self._count


@contextmanager
def _deferred_signals() -> Generator[Signals, None, None]:
    """Turn interrupts into something to poll, so that none ever breaks into a transaction."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {number: signal.getsignal(number) for number in _PAUSE_SIGNALS}
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number, handler in before.items():
        if handler is not signal.SIG_IGN or number == signal.SIGINT:
            signal.signal(number, _do_nothing)
    try:
        yield Signals(reader)
    finally:
        signal.set_wakeup_fd(waker)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Let the wake-up descriptor tell of the signal."""


def require_workspace(task: Task) -> None:
    """Refuse a task whose workspace is not where it was."""
    if not os.path.isdir(task.spec.workspace):
        sentence = f"task {task.id} cannot go on: its workspace {task.spec.workspace} is not there any more"
        raise CannotResume(sentence, way_out=f"adjourn restart {task.id}")


def child_environment(inherited: Mapping[str, str], run: Run, call: Call, *, root: str, path: str | None) -> dict[str, str]:
    """Return the environment of a run's process: nothing of an outer run, and no approval that was not given to this one."""
    environment = {
        name: value for name, value in inherited.items() if name != "AUTO_APPROVAL" and not name.startswith("ADJOURN_")
    }
    if path:
        environment["PATH"] = os.pathsep.join([path, environment.get("PATH", os.defpath)])
    ours = {"STORE": root, "TASK_ID": run.task_id, "RUN_ID": run.id, "CALL_ID": call.id}
    return environment | {f"ADJOURN_{name}": value for name, value in ours.items()}


def is_ready(task: Task) -> bool:
    """Say whether a supervisor may take the task."""
    return task.state is TaskState.QUEUED


def wait_until(
    controller: Controller,
    task_id: str,
    is_reached: Callable[[Task], bool],
    *,
    look: Callable[[], None],
    timeout: float | None = None,
    every_ms: int = _LOOK_MS,
) -> Task:
    """Wait for a task, by events and without work in between. `look` is called first and at every event."""
    gc.enable()  # short commands go without; this one may last
    ear = controller.store.listen()
    poll = select.poll()
    poll.register(ear.fileno(), select.POLLIN)
    deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
    try:
        while True:
            ear.drain()
            look()
            with controller.store.read() as view:
                task = view.task(task_id)
            rest = deadline - time.monotonic()
            if is_reached(task) or rest <= 0:
                return task
            poll.poll(min(every_ms, rest * 1000))
    finally:
        ear.close()


def interrupt_orphan(controller: Controller, task: Task, *, root: str) -> None:
    """Interrupt a run whose supervisor is gone; one that has a supervisor is interrupted by it."""
    with controller.store.read() as view:
        run = view.run(task.id, task.runs)
    if run.shim is None or LocalProcesses(root).supervisor_lives(run.supervisor):
        return
    shim = adopt(run_directory(root, run.id), run.shim)
    if shim is not None:
        shim.interrupt()
        shim.wait(task.spec.grace + 1)
        shim.close()

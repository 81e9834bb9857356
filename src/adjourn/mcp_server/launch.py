"""Starts the supervisors of tasks that a server starts: each in its own session, outlives us."""

import os
import signal
import subprocess
import time
from collections.abc import Callable

from adjourn.core.states import TaskState
from adjourn.core.task import Milliseconds, Task
from adjourn.system.machine import AGENT_SECRET, KEY, store_key
from adjourn.wiring import find_unattended, has_worker
from adjourn.wiring.own_program import own_environment, own_python

# Supervisors of this process that may still run. They outlive the server of one client, so they
# are kept here until somebody has seen them leave.
_supervisors: set["subprocess.Popen[bytes]"] = set()


_AGAIN = 10.0  # seconds until a task that nobody took is given another supervisor


class Launch:
    """A supervisor that was started before its task was committed.

    It waits until it is told to begin. If we die before that, it looks in the store: a task that
    was committed is run, so none is lost between the two.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def begin(self, task_id: str) -> None:
        """Have it run that task."""
        self._tell(task_id)

    def drop(self) -> None:
        """Have it leave: there is nothing to run."""
        self._tell("-")

    def interrupt(self) -> None:
        """Send it a Ctrl+C: the first pauses its task, one after a request to stop kills it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _tell(self, word: str) -> None:
        assert self._process.stdin  # noqa: S101 -- it was opened with a pipe
        try:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.close()
        except BrokenPipeError:  # it could not start; the task stays queued, and a wait takes it
            return


class Launcher:
    """Starts supervisors for one store, unless a worker is alive that takes its tasks."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._launched: dict[str, float] = {}

    def commit(self, launch: Launch | None, act: Callable[[], Task]) -> Task:
        """Commit a change, then have the supervisor that was started for it begin, or leave."""
        try:
            task = act()
        except BaseException:
            if launch:
                launch.drop()
            raise
        if launch and task.state is TaskState.QUEUED:
            self._launched[task.id] = time.monotonic()
            launch.begin(task.id)
        elif launch:
            launch.drop()
        return task

    def take(self, task: Task) -> None:
        """Start a supervisor for a queued task, unless a worker is alive that takes it."""
        self._launched[task.id] = time.monotonic()
        launch = self.start(task.spec.pool, task_id=task.id)
        if launch:
            launch.begin(task.id)

    def adopt(self, task: Task, *, now: Milliseconds) -> None:
        """Give a queued task a supervisor that was left without one."""
        if not find_unattended(self._root, [task], now=now):
            return
        if time.monotonic() - self._launched.get(task.id, -_AGAIN) >= _AGAIN:
            self.take(task)

    def start(self, pool: str, *, slot: str | None = None, task_id: str = "") -> Launch | None:
        """Start a supervisor for the task that will have a slot, or for one that is there."""
        self.reap()
        if has_worker(self._root, pool):
            return None
        words = ["--slot", slot] if slot else ["--task", task_id]
        environment = own_environment(os.environ)
        environment.pop(AGENT_SECRET, None)
        if key := store_key():
            environment[KEY] = key
        process = subprocess.Popen(
            own_python("_supervise", "--store", self._root, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,  # a host may kill our whole process group
        )
        _supervisors.add(process)
        return Launch(process)

    def reap(self) -> None:
        """Let go of supervisors that have left."""
        for process in list(_supervisors):  # two clients may do this at once
            if process.poll() is not None:
                if process.stdin:  # one that left before it was told anything
                    process.stdin.close()
                _supervisors.discard(process)

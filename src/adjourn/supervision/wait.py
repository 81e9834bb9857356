"""Waits for a task, and interrupts a run whose supervisor is gone."""

import gc
import time
from collections.abc import Callable
from contextlib import closing

from adjourn.controller.controller import Controller
from adjourn.controller.transaction import children_left_open
from adjourn.core.errors import Conflict
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Task, run_id
from adjourn.ports.store import View
from adjourn.process.processes import LocalProcesses
from adjourn.process.shim import adopt, holds_lock
from adjourn.system.files import run_directory
from adjourn.system.poll import CHECK_SECONDS, Poll

_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})


def is_settled(view: View, task: Task) -> bool:
    """Return whether a task has ended or needs a person.

    One that only waits for tasks which it started needs one as soon as one of them does.
    """
    if task.state in _UNDER_WAY:
        return False
    if task.state is not TaskState.WAITING or view.open_asks_of(task.id):
        return True
    children = [
        child
        for child in children_left_open(view, run_id(task.id, task.runs))
        if child.state not in ENDED
    ]
    return not children or any(is_settled(view, child) for child in children)


def wait_until(
    controller: Controller,
    task_id: str,
    is_reached: Callable[[Task], bool],
    *,
    look: Callable[[], None],
    timeout: float | None = None,
    every: float = CHECK_SECONDS,
) -> Task:
    """Wait until a task is as wanted, or for so long; return it as it is then.

    `look` is called first, at every event, and every so many seconds.
    """
    gc.freeze()
    gc.enable()  # short commands go without; this one may last
    deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
    with closing(controller.store.listen()) as listener:
        poll = Poll(listener)
        while True:
            look()
            with controller.store.read() as view:
                task = view.task(task_id)
            rest = deadline - time.monotonic()
            if is_reached(task) or rest <= 0:
                return task
            poll.wait(min(every, rest))


def interrupt_orphan(controller: Controller, task: Task, *, root: str) -> None:
    """Interrupt a run whose supervisor is gone; one that has a supervisor is interrupted by it."""
    with controller.store.read() as view:
        run = view.run(task.id, task.runs)
    if run.shim is None or LocalProcesses(root).supervisor_lives(run.supervisor):
        return
    directory = run_directory(root, run.id)
    shim = adopt(directory, run.shim)
    if shim is None and holds_lock(directory):
        raise Conflict(
            f"run {run.id} runs in another PID namespace, and its supervisor is gone: "
            "it stops when a worker sees it there",
            way_out="adjourn worker --once, in the container or on the host that started it",
        )
    if shim is not None:
        shim.interrupt()
        shim.wait(task.spec.grace + 1)
        shim.close()

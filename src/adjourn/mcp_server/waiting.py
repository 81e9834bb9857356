"""What a wait for tasks wants, and whether it has it; the same for every transport."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.states import TaskState
from adjourn.core.task import Task

Json = dict[str, Any]
_UNDER_WAY = frozenset({TaskState.QUEUED, TaskState.RUNNING})

# Seconds that a wait may last, by the name of the client: it must end before the host's own limit
CEILINGS = {"codex-mcp-client": 290.0, "claude-code": 110.0}
CEILING = 50.0


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """How a task paused, so that the same pause is told once."""

    state: TaskState
    runs: int
    open_asks: tuple[str, ...]


class TaskWait:
    """Waits until one or all of some tasks have ended, or have paused since they were last told."""

    def __init__(
        self,
        controller: Controller,
        task_ids: Sequence[str],
        *,
        until: Literal["any", "all"],
        timeout: float,
        told: dict[str, Pause],
        describe: Callable[[bool], Json],
        adopt: Callable[[Task], None],
    ) -> None:
        self._controller = controller
        self._ids = tuple(dict.fromkeys(task_ids))
        self._until = until
        self._told = told
        self._describe = describe
        self._adopt = adopt
        self._began = time.monotonic()
        self.deadline: float | None = self._began + timeout
        self.fd: int | None = None

    def concerns(self, task_ids: frozenset[str]) -> bool:
        """Return whether changes of these tasks may make it ready."""
        return not task_ids.isdisjoint(self._ids)

    def result(self, *, is_late: bool) -> Json | None:
        """Return the result if the tasks are as wanted, or if the time is over."""
        ready: list[bool] = []
        pauses: dict[str, Pause] = {}
        with self._controller.store.read() as view:
            tasks = [view.task(name) for name in self._ids]
            for task in tasks:
                if task.state in {TaskState.WAITING, TaskState.PAUSED}:
                    asks = tuple(ask.id for ask in view.open_asks_of(task.id))
                    pauses[task.id] = Pause(state=task.state, runs=task.runs, open_asks=asks)
                is_news = self._told.get(task.id) != pauses.get(task.id)
                is_settled = task.state not in _UNDER_WAY
                ready.append(is_settled and (task.id not in pauses or is_news))
        for task in tasks:
            if task.state is TaskState.QUEUED:
                self._adopt(task)
        is_ready = any(ready) if self._until == "any" else all(ready)
        if not is_ready and not is_late:
            return None
        self._told.update(pauses)
        return self._describe(not is_ready)

    def progress(self) -> str:
        """Return how many of the tasks are still under way."""
        with self._controller.store.read() as view:
            states = [view.task(name).state for name in self._ids]
        waiting = sum(state is TaskState.WAITING for state in states)
        running = sum(state in _UNDER_WAY for state in states)
        return f"{running} running, {waiting} waiting for a person, of {len(states)}"


def ceiling_of(client: str) -> float:
    """Return how long a wait of that client may last."""
    return CEILINGS.get(client, CEILING)

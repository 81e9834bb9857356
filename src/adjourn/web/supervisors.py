"""Starts what the server's clients start or let go on, each in a process of its own."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.trail.events import Happened
from adjourn.mcp_server.launch import Launcher

_MOST = 200  # queued tasks that are looked at when the server starts
# Events of decisions through a server; a task that these queued goes on here
_QUEUES = frozenset({"task_queued", "task_resumed", "task_continued", "task_restarted"})
_SURFACES = ("token:", "web:", "passkey:", "link:", "telegram:", "slack:")


class Supervisors:
    """Supervisors for the tasks of one store; where a worker is alive, it takes them."""

    def __init__(self, root: str) -> None:
        self.launcher = Launcher(root)

    def start(self, pool: str, slot: str, commit: Callable[[], Task]) -> Task:
        """Commit a new task with a supervisor at hand, so that none is lost between the two."""
        return self.launcher.commit(self.launcher.start(pool, slot=slot), commit)

    @staticmethod
    def queued_in(events: Iterable[Happened]) -> list[str]:
        """Return the tasks that were queued by somebody who decides through a server."""
        return [
            happened.event.task_id
            for happened in events
            if happened.event.kind in _QUEUES and happened.event.by.startswith(_SURFACES)
        ]

    def go_on(self, controller: Controller, task_ids: Iterable[str]) -> None:
        """Have queued tasks go on; what cannot be started now stays queued."""
        for task_id in dict.fromkeys(task_ids):
            with suppress(AdjournError, OSError):
                with controller.store.read() as view:
                    task = view.task(task_id)
                if task.state is TaskState.QUEUED:
                    self.launcher.take(task)

    def adopt_left(self, controller: Controller) -> None:
        """Start what an earlier server queued and could not start: it was ended in between."""
        with controller.store.read() as view:
            queued = view.tasks(states=(TaskState.QUEUED,), limit=_MOST)
            ours = [
                task
                for task in queued
                if any(
                    event.by.startswith(_SURFACES) for event in view.newest_events(task.id, limit=1)
                )
            ]
        for task in ours:
            self.launcher.take(task)

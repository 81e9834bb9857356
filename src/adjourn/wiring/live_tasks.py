"""The tasks of one store as a live surface shows them, read again when events name them."""

from collections.abc import Iterable

from adjourn.core.errors import NotFound, UnreadableRow
from adjourn.core.redact import Redactor, plainly
from adjourn.core.states import ENDED, UNFINISHED, TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import clipped, prose, title
from adjourn.core.trail.durations import time_spent
from adjourn.ports.store import Store, View
from adjourn.views.ask_row import ask_gist
from adjourn.views.call import GIST
from adjourn.views.overview import OverviewTask

_MOST = 200  # unfinished tasks that are read at first
_ENDED_KEPT = 20


class LiveTasks:
    """What runs, waits and has ended last in one store."""

    def __init__(self, store: Store, *, name: str = "", redactor: Redactor | None = None) -> None:
        self._store = store
        self._name = name
        self._redactor = redactor
        self._tasks: dict[str, OverviewTask] = {}

    @property
    def tasks(self) -> list[OverviewTask]:
        """The tasks, in no particular order."""
        return list(self._tasks.values())

    def read_all(self) -> None:
        """Read the unfinished tasks and the newest of those that have ended."""
        with self._store.read() as view:
            found = view.tasks(states=UNFINISHED, limit=_MOST)
            found += view.tasks(states=tuple(ENDED), limit=_ENDED_KEPT)
            self._tasks = {}
            for task in found:
                self._keep(view, task)

    def read(self, task_ids: Iterable[str]) -> None:
        """Read these tasks again; those that were forgotten are left out."""
        with self._store.read() as view:
            for task_id in task_ids:
                self._tasks.pop(task_id, None)
                try:
                    self._keep(view, view.task(task_id))
                except NotFound:
                    continue
        ended = [each.task for each in self._tasks.values() if each.task.state in ENDED]
        for task in sorted(ended, key=lambda each: -each.updated_at)[_ENDED_KEPT:]:
            del self._tasks[task.id]

    def _keep(self, view: View, task: Task) -> None:
        try:
            self._tasks[task.id] = OverviewTask(
                task=task,
                what=self._what(view, task),
                spent=time_spent(view.events(task.id)),
                store=self._name,
            )
        except UnreadableRow as error:
            error.note_in(view.unreadable)

    def _what(self, view: View, task: Task) -> str:
        """Return what a task asks, else why it failed, else what it is."""
        redactor = self._redactor
        if redactor:
            task = redactor.task(task)
        what = title(task.spec, columns=GIST)
        if task.state is TaskState.WAITING and (asks := view.open_asks_of(task.id)):
            more = f" (and {len(asks) - 1} more)" if len(asks) > 1 else ""
            what = f"{asks[0].kind}: {ask_gist(view, asks[0], task, redactor)}{more}"
        elif task.state in {TaskState.FAILED, TaskState.PAUSED} and task.message:
            what = f"{what}: {prose(task.message)}"
        what = clipped(what, columns=GIST)
        return plainly(what) if redactor else what

"""Puts a worker together."""

import os
from collections.abc import Callable

from adjourn.controller.whole import Controller
from adjourn.core.errors import StoreProblem
from adjourn.core.settings import Settings
from adjourn.core.task import Task
from adjourn.exchange import once, recover, take_responses
from adjourn.process.supervisors import About
from adjourn.stores.sqlite.place import DATABASE
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.supervise import Supervisor
from adjourn.wiring import is_shared, now
from adjourn.wiring.supervision import open_supervising
from adjourn.wiring.whereabouts import place_if_any
from adjourn.worker import Log, Worker


def open_worker(
    root: str,
    settings: Settings,
    *,
    pool: str,
    log: Log,
    on_settled: Callable[[Controller, Task], None],
    on_look: Callable[[Controller, int], None],
) -> tuple[Supervisor, Worker]:
    """Make a worker for a pool of the store."""
    about = About(pid=os.getpid(), started_at=now(), pool=pool, max_active=settings.max_active, place=place_if_any())
    controller, supervisor = open_supervising(root, about, tries=settings.retries, is_worker=True)
    known = _identity(root)
    if is_shared(root):
        from adjourn.wiring.shared import log_waits

        log_waits(controller.store, log)
    elif isinstance(controller.store, SqliteStore):
        controller.store.say = lambda sentence, way_out: log("store_slow", error=sentence, way_out=way_out)

    def look() -> None:
        if _identity(root) != known:
            raise StoreProblem(f"{root} was removed or replaced", way_out="adjourn worker")
        if isinstance(controller.store, SqliteStore):
            controller.store.require_in_place()
        on_look(controller, worker.active)

    is_noted = False

    def settle() -> list[Task]:
        """Settle what dead supervisors left, and note once, while nothing runs, from where this worker uses the store."""
        nonlocal is_noted
        settled = recover(controller, root)
        is_noted = is_noted or controller.note_place(controller.principal())
        return settled

    refuse = once(root, lambda sentence: log("response_refused", error=sentence))
    worker = Worker(
        controller,
        supervisor,
        settings=settings,
        log=log,
        on_settled=lambda task: on_settled(controller, task),
        recover=settle,
        look_for_responses=lambda: take_responses(controller, root, refuse=refuse),
        on_look=look,
        pool=pool,
    )
    return supervisor, worker


def _identity(root: str) -> tuple[int, int] | None:
    """Return which file the store's database is: one that was removed can be read on for ever, and nobody writes to it."""
    try:
        found = os.stat(os.path.join(root, DATABASE))
    except OSError:
        return None
    return (found.st_dev, found.st_ino)

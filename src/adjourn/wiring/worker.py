"""Puts a worker together."""

import os

from adjourn.controller.controller import Controller
from adjourn.core.errors import StoreProblem
from adjourn.core.redact import Redactor
from adjourn.core.settings import Settings
from adjourn.process.supervisors import SupervisorRecord
from adjourn.stores.sqlite.directory import DATABASE
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.supervision.supervisor import Supervisor
from adjourn.supervision.worker import Log, Worker
from adjourn.system.machine import is_shortage, now
from adjourn.views.block import CommandWriter
from adjourn.wiring.authority import place_if_any
from adjourn.wiring.supervisor import open_supervising


def open_worker(
    root: str,
    settings: Settings,
    *,
    pool: str,
    log: Log,
    commands: CommandWriter,
    redactor: Redactor,
) -> tuple[Controller, Supervisor, Worker]:
    """Make a worker for a pool of the store."""
    about = SupervisorRecord(
        pid=os.getpid(),
        started_at=now(),
        pool=pool,
        max_active=settings.max_active,
        place=place_if_any(),
    )
    controller, supervisor = open_supervising(root, about, tries=settings.retries, is_worker=True)
    known = _identity(root)
    if isinstance(controller.store, SqliteStore):
        controller.store.say = lambda sentence, way_out: log(
            "store_slow", error=sentence, way_out=way_out
        )

    def check_store() -> None:
        if _identity(root) != known:
            raise StoreProblem(f"{root} was removed or replaced", way_out="adjourn worker")
        if isinstance(controller.store, SqliteStore):
            try:
                controller.store.require_in_place()
            except StoreProblem as error:
                reason = error.__cause__
                if not (isinstance(reason, OSError) and is_shortage(reason.errno)):
                    raise
                # The machine has nothing to look with just now; the next round looks again

    worker = Worker(
        controller,
        supervisor,
        settings=settings,
        log=log,
        root=root,
        commands=commands,
        redactor=redactor,
        check_store=check_store,
        pool=pool,
    )
    return controller, supervisor, worker


def _identity(root: str) -> tuple[int, int] | None:
    """Return which file the store's database is.

    One that was removed can be read on for ever, and nobody writes to it.
    """
    try:
        found = os.stat(os.path.join(root, DATABASE))
    except OSError:
        return None
    return (found.st_dev, found.st_ino)

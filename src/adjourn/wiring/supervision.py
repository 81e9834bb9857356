"""Puts supervisors and workers together."""

import os
import sys
from collections.abc import Callable

from adjourn.controller import TRIES, Controller
from adjourn.core.task import Task
from adjourn.exchange import take_responses
from adjourn.process.forkserver import ForkServer
from adjourn.process.supervisors import About
from adjourn.supervise import Supervisor
from adjourn.wiring import new_id, now, open_controller
from adjourn.worker import Log, Settings, Worker


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return _open(root, About(pid=os.getpid(), started_at=now()), tries=TRIES)


def open_worker(
    root: str,
    settings: Settings,
    *,
    pool: str,
    log: Log,
    on_settled: Callable[[Controller, Task], None],
    on_look: Callable[[], None] = lambda: None,
) -> tuple[Supervisor, Worker]:
    """Make a worker for a pool of the store."""
    about = About(pid=os.getpid(), started_at=now(), pool=pool, max_active=settings.max_active)
    controller, supervisor = _open(root, about, tries=settings.retries)
    worker = Worker(
        controller,
        supervisor,
        settings=settings,
        log=log,
        on_settled=lambda task: on_settled(controller, task),
        look_for_responses=lambda refuse: take_responses(controller, root, refuse=refuse),
        on_look=on_look,
        pool=pool,
    )
    return supervisor, worker


def _open(root: str, about: About, *, tries: int) -> tuple[Controller, Supervisor]:
    forks = ForkServer.start()
    controller = open_controller(root)
    return controller, Supervisor(controller, forks, root=root, new_id=new_id, path=scripts_directory(), about=about, tries=tries)


def scripts_directory() -> str | None:
    """Return where this very adjourn is installed as a command, if it is."""
    for candidate in (os.path.abspath(sys.argv[0]), os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if os.path.basename(candidate) == "adjourn" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.dirname(candidate)
    return None

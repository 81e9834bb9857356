"""Puts supervisors and workers together."""

import os
import sys
from collections.abc import Callable

import msgspec

from adjourn.controller import TRIES, Controller
from adjourn.core.task import Task
from adjourn.process import lock
from adjourn.process.forkserver import ForkServer
from adjourn.supervise import About, Supervisor
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
        on_look=on_look,
        pool=pool,
    )
    return supervisor, worker


def _open(root: str, about: About, *, tries: int) -> tuple[Controller, Supervisor]:
    forks = ForkServer.start()
    controller = open_controller(root)
    return controller, Supervisor(controller, forks, root=root, new_id=new_id, path=scripts_directory(), about=about, tries=tries)


def living_supervisors(root: str) -> dict[str, bytes]:
    """Return the supervisors that hold their locks, and what each says of itself."""
    place = os.path.join(root, "supervisors")
    living: dict[str, bytes] = {}
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
        path = os.path.join(place, name)
        if lock.is_held(path):
            with open(path, "rb") as file:
                living[name.removesuffix(".lock")] = file.read()
    return living


def has_worker(root: str, pool: str) -> bool:
    """Say whether a worker of that pool is alive."""
    abouts = (msgspec.json.decode(about, type=About) for about in living_supervisors(root).values() if about)
    return any(about.pool == pool for about in abouts)


def scripts_directory() -> str | None:
    """Return where this very adjourn is installed as a command, if it is."""
    for candidate in (os.path.abspath(sys.argv[0]), os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if os.path.basename(candidate) == "adjourn" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.dirname(candidate)
    return None

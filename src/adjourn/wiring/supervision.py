"""Puts a supervisor together."""

import os
from functools import partial

from adjourn.controller import Controller
from adjourn.core.task import TRIES
from adjourn.ports import Heart
from adjourn.process.forkserver import ForkServer
from adjourn.process.supervisors import About
from adjourn.supervise import Supervisor
from adjourn.wiring import is_shared, new_id, now, open_controller
from adjourn.wiring.judging import scripts_directory


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return open_supervising(root, About(pid=os.getpid(), started_at=now()), tries=TRIES)


def open_supervising(root: str, about: About, *, tries: int) -> tuple[Controller, Supervisor]:
    """Make a supervisor that says this about itself."""
    forks = ForkServer.start()
    controller = open_controller(root)
    return controller, Supervisor(
        controller,
        forks,
        root=root,
        new_id=new_id,
        path=scripts_directory(),
        about=about,
        tries=tries,
        start_heart=partial(_start_heart, root, about) if is_shared(root) else None,
    )


def _start_heart(root: str, about: About, supervisor: str) -> Heart:
    from adjourn.wiring.shared import start_heart

    return start_heart(root, about, supervisor=supervisor)

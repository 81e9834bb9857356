"""Puts a supervisor together."""

import os
from functools import partial

from adjourn.controller.whole import Controller
from adjourn.core.errors import StoreRefused
from adjourn.core.task import TRIES
from adjourn.ports.leases import Heart
from adjourn.process.forkserver import ForkServer
from adjourn.process.supervisors import About
from adjourn.process.workspace import is_tracked
from adjourn.supervise import Supervisor
from adjourn.wiring import ADDRESS, is_shared, new_id, now
from adjourn.wiring.controller import open_controller
from adjourn.wiring.judging import scripts_directory


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return open_supervising(root, About(pid=os.getpid(), started_at=now()), tries=TRIES)


def open_supervising(root: str, about: About, *, tries: int) -> tuple[Controller, Supervisor]:
    """Make a supervisor that says this about itself."""
    _refuse_foreign(root)
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


def _refuse_foreign(root: str) -> None:
    """Refuse to start anything out of a store that came with a repository: its approvals may be anybody's."""
    if any(is_tracked(os.path.join(root, name)) for name in ("adjourn.db", ADDRESS)):
        sentence = f"{root} is part of the repository: whoever wrote that may have put approvals into it; nothing is started"
        raise StoreRefused(sentence, way_out=f"git rm -r --cached {root}, after a look at it with adjourn tasks")

"""Puts a supervisor together."""

import os
from collections.abc import Callable
from functools import partial

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.task import TRIES
from adjourn.ports.leases import RunLeases
from adjourn.process.forks.client import ForkServer
from adjourn.process.supervisors import SupervisorRecord
from adjourn.runners import DEFAULT_AGENT
from adjourn.supervision.supervisor import Supervisor
from adjourn.system.machine import new_id, now
from adjourn.wiring import is_shared, left_by
from adjourn.wiring.authority import place_if_any
from adjourn.wiring.controller import open_controller
from adjourn.wiring.own_program import own_program

_PACKAGES = ("pydantic_ai", "openai", "anthropic", "msgspec", "apsw")
_SLOW = (
    "adjourn.cli.app",
    "adjourn.cli.verbs._drivers",
    "adjourn.wiring.drivers",
    "adjourn.wiring.policies",
    "adjourn.runners.agent.model",
    "pydantic_ai.models.openai",
    "pydantic_ai.models.anthropic",
    "openai.resources.chat.completions",
    "anthropic.resources.beta.messages",
    "asyncio",
)
_STORE = "adjourn.stores.sqlite.store"
_SHARED_STORE = "adjourn.wiring.shared"
_REHEARSAL = "adjourn.runners.agent.warm_up:rehearse"
_ENTRY = "adjourn.cli.app:run"


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return open_supervising(
        root, SupervisorRecord(pid=os.getpid(), started_at=now(), place=place_if_any()), tries=TRIES
    )


def open_supervising(
    root: str, about: SupervisorRecord, *, tries: int, is_worker: bool = False
) -> tuple[Controller, Supervisor]:
    """Make a supervisor, and the controller that it uses."""
    forks = ForkServer.start()
    try:
        controller = open_controller(root)
        # Nothing is started out of a copy, or a store that lacks what happened here: its approvals
        # may be anybody's.
        controller.store.require_ours()
    except BaseException:
        forks.close()
        raise
    start_leases: Callable[[str], RunLeases] | None = None
    if is_shared(root):
        from adjourn.wiring import shared  # its packages are optional

        # Since when it is there, by the clock that the machines have in common
        common = msgspec.structs.replace(about, started_at=controller.now())

        start_leases = partial(shared.start_leases, root, common)
    supervisor = Supervisor(
        controller,
        forks,
        root=root,
        new_id=new_id,
        own=own_program(),
        about=about,
        left_by=left_by,
        tries=tries,
        start_leases=start_leases,
    )
    if is_worker:
        # From its first agent on, a worker has the agent's slow modules imported
        from adjourn.process.forks.warm import WarmForks  # only workers need it

        modules = (*_SLOW, _SHARED_STORE if is_shared(root) else _STORE)
        warm = WarmForks(
            forks, modules=modules, rehearsal=_REHEARSAL, entry=_ENTRY, files=_code_files
        )
        supervisor.keep_warm(warm, runner=DEFAULT_AGENT)
    return controller, supervisor


def _code_files() -> list[str]:
    """Return the files that change whenever our code does, or a package that it uses."""
    from importlib.util import find_spec  # seldom needed, and slow to import

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = [spec.origin for name in _PACKAGES if (spec := find_spec(name)) and spec.origin]
    return others + [
        os.path.join(folder, name)
        for folder, _, names in os.walk(ours)
        for name in names
        if name.endswith(".py")
    ]

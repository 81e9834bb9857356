"""Puts a supervisor together."""

import os
from functools import partial

import msgspec

from adjourn.controller.whole import Controller
from adjourn.core.task import TRIES
from adjourn.ports.leases import Heart
from adjourn.process.forkserver import ForkServer
from adjourn.process.supervisors import About
from adjourn.supervise import Supervisor
from adjourn.wiring import is_shared, new_id, now
from adjourn.wiring.controller import open_controller
from adjourn.wiring.judging import own_program
from adjourn.wiring.whereabouts import place_if_any

_PACKAGES = ("pydantic_ai", "openai", "anthropic", "msgspec", "apsw")
_SLOW = (
    *("adjourn.cli.app", "adjourn.cli._agent", "adjourn.cli._tool", "adjourn.wiring.agent", "adjourn.wiring.driving"),
    *("adjourn.wiring.judging", "adjourn.runners.agent.model", "pydantic_ai.models.openai", "pydantic_ai.models.anthropic"),
    *("openai.resources.chat.completions", "anthropic.resources.beta.messages", "asyncio"),
)
_STORE = "adjourn.stores.sqlite.store"
_SHARED_STORE = "adjourn.wiring.shared"
_REHEARSAL = "adjourn.runners.agent.rehearsal:rehearse"
_ENTRY = "adjourn.cli.app:run"


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return open_supervising(root, About(pid=os.getpid(), started_at=now(), place=place_if_any()), tries=TRIES)


def open_supervising(root: str, about: About, *, tries: int, is_worker: bool = False) -> tuple[Controller, Supervisor]:
    """Make a supervisor that says this about itself."""
    forks = ForkServer.start()
    try:
        controller = open_controller(root)
        # Nothing is started out of a copy, or a store that lacks what happened here: its approvals may be anybody's.
        controller.store.require_ours()
    except BaseException:
        forks.close()
        raise
    supervisor = Supervisor(
        controller,
        forks,
        root=root,
        new_id=new_id,
        own=own_program(),
        about=about,
        tries=tries,
        start_heart=partial(_start_heart, root, _as_all_know(about, controller)) if is_shared(root) else None,
    )
    if is_worker:
        _keep_warm(supervisor, forks, root=root)
    return controller, supervisor


def _keep_warm(supervisor: Supervisor, forks: ForkServer, *, root: str) -> None:
    """Have the agent's slow modules at hand for a worker, from the first agent on that it runs."""
    from adjourn.process.warmth import Warmth

    modules = (*_SLOW, _SHARED_STORE if is_shared(root) else _STORE)
    supervisor.keep_warm(Warmth(forks, modules=modules, rehearsal=_REHEARSAL, entry=_ENTRY, files=_code))


def _code() -> list[str]:
    """Return the files that change whenever the code does: ours, or one of the packages behind it."""
    from importlib.util import find_spec  # seldom needed

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = [spec.origin for name in _PACKAGES if (spec := find_spec(name)) and spec.origin]
    return beside + [os.path.join(folder, name) for folder, _, names in os.walk(ours) for name in names if name.endswith(".py")]


def _as_all_know(about: About, controller: Controller) -> About:
    """Say since when a supervisor is there by the clock that machines have in common."""
    return msgspec.structs.replace(about, started_at=controller.now())


def _start_heart(root: str, about: About, supervisor: str) -> Heart:
    from adjourn.wiring.shared import start_heart

    return start_heart(root, about, supervisor=supervisor)

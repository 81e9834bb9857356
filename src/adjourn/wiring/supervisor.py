"""Puts a supervisor together."""

import os
from functools import partial

import msgspec

from adjourn.clarifications.exchange import once, recover, take_responses
from adjourn.controller.controller import Controller
from adjourn.core.errors import StoreProblem
from adjourn.core.settings import Settings
from adjourn.core.task import TRIES, Task
from adjourn.core.text.redact import Redactor
from adjourn.ports.leases import RunLeases
from adjourn.process.forks.client import ForkServer
from adjourn.process.processes import About
from adjourn.runners import DEFAULT_AGENT
from adjourn.stores.sqlite.directory import DATABASE
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.supervision.supervisor import Supervisor
from adjourn.supervision.worker import Log, Worker
from adjourn.views.commands import CommandWriter
from adjourn.wiring import is_shared, new_id, now
from adjourn.wiring.controller import open_controller
from adjourn.wiring.outside_runs import place_if_any
from adjourn.wiring.policies import own_program

_PACKAGES = ("pydantic_ai", "openai", "anthropic", "msgspec", "apsw")
_SLOW = (
    *(
        "adjourn.cli.app",
        "adjourn.cli.verbs._drivers",
        "adjourn.cli.verbs._drivers",
        "adjourn.wiring.drivers",
        "adjourn.wiring.drivers",
    ),
    *(
        "adjourn.wiring.policies",
        "adjourn.runners.agent.model",
        "pydantic_ai.models.openai",
        "pydantic_ai.models.anthropic",
    ),
    *("openai.resources.chat.completions", "anthropic.resources.beta.messages", "asyncio"),
)
_STORE = "adjourn.stores.sqlite.store"
_SHARED_STORE = "adjourn.wiring.shared"
_REHEARSAL = "adjourn.runners.agent.warm_up:rehearse"
_ENTRY = "adjourn.cli.app:run"


def open_supervisor(root: str) -> tuple[Controller, Supervisor]:
    """Fork the fork server, then open the store: what is forked must not hold it."""
    return open_supervising(
        root, About(pid=os.getpid(), started_at=now(), place=place_if_any()), tries=TRIES
    )


def open_supervising(
    root: str, about: About, *, tries: int, is_worker: bool = False
) -> tuple[Controller, Supervisor]:
    """Make a supervisor that says this about itself."""
    forks = ForkServer.start()
    try:
        controller = open_controller(root)
        # Nothing is started out of a copy, or a store that lacks what happened here: its approvals
        # may be anybody's.
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
        start_leases=partial(_start_leases, root, _as_all_know(about, controller))
        if is_shared(root)
        else None,
    )
    if is_worker:
        _keep_warm(supervisor, forks, root=root)
    return controller, supervisor


def _keep_warm(supervisor: Supervisor, forks: ForkServer, *, root: str) -> None:
    """Have the agent's slow modules at hand for a worker, from the first agent on that it runs."""
    from adjourn.process.forks.warm import Warmth

    modules = (*_SLOW, _SHARED_STORE if is_shared(root) else _STORE)
    supervisor.keep_warm(
        Warmth(forks, modules=modules, rehearsal=_REHEARSAL, entry=_ENTRY, files=_code),
        runner=DEFAULT_AGENT,
    )


def _code() -> list[str]:
    """Return the files that change whenever the code does.

    Ours, or one of the packages behind it.
    """
    from importlib.util import find_spec  # seldom needed

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = [spec.origin for name in _PACKAGES if (spec := find_spec(name)) and spec.origin]
    return beside + [
        os.path.join(folder, name)
        for folder, _, names in os.walk(ours)
        for name in names
        if name.endswith(".py")
    ]


def _as_all_know(about: About, controller: Controller) -> About:
    """Say since when a supervisor is there by the clock that machines have in common."""
    return msgspec.structs.replace(about, started_at=controller.now())


def _start_leases(root: str, about: About, supervisor: str) -> RunLeases:
    from adjourn.wiring.shared import start_leases

    return start_leases(root, about, supervisor=supervisor)


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
    about = About(
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
            controller.store.require_in_place()

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
        root=root,
        commands=commands,
        redactor=redactor,
        recover=settle,
        look_for_responses=lambda: take_responses(controller, root, refuse=refuse),
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

"""Puts the parts together; the only package that knows them all.

What every verb needs is here, the rest one file each.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from adjourn.controller.context import Context
from adjourn.controller.decisions import Decisions
from adjourn.core.errors import AdjournError, Misuse, StoreProblem
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.process import supervisors
from adjourn.process.supervisors import SupervisorRecord
from adjourn.settings.find_store import (
    ADDRESS,
    STORE,
    URLS,
    is_shared,
    nearest_store,
    place_for_a_new_store,
)
from adjourn.system.files import (
    OTHER_RESPONSE,
    RESPONSE,
    checkpoint_path,
    clarifications_directory,
)
from adjourn.system.machine import new_id, now, state_directory, store_key
from adjourn.wiring.authority import FileAuthoriser, FileSignatures

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path
    from adjourn.core.call import Call
    from adjourn.core.clarification import Left
    from adjourn.ports.world import Gate, Processes, Runner
    from adjourn.stores.postgres.store import PostgresStore
    from adjourn.stores.sqlite.store import SqliteStore

__all__ = [
    "ADDRESS",
    "STORE",
    "SupervisorRecord",
    "find_root",
    "has_responses",
    "has_worker",
    "is_shared",
    "left_by",
    "living",
    "name_of_store",
    "open_decisions",
    "open_store",
]

# How a database is named elsewhere
_CONNECTION_WORDS = ("://", "host=", "dbname=", "password=", "postgres:", "postgresql:")
_MOMENT_MS = 2_000  # that a detached supervisor may need to take its task


def find_root(given: str | None, *, start: str | None = None) -> str:
    """Return the store's directory: the given or nearest one, or where a new one belongs.

    Of a store that machines share, it is the place of its files on this machine.
    """
    if given and given.startswith(URLS):
        with postgres_is_there():
            # Needs an optional package
            from adjourn.wiring.shared import place_for
        return place_for(given)
    if given:
        _refuse_connections(given)
        return os.path.abspath(given)
    here = start or os.getcwd()
    return nearest_store(here) or place_for_a_new_store(here)


def _refuse_connections(given: str) -> None:
    """Refuse to take for a directory what was meant to name a database, and may hold a password."""
    if any(word in given for word in _CONNECTION_WORDS):
        sentence = "a store is a directory, or a URL that begins with postgresql://"
        raise Misuse(sentence, way_out="ADJOURN_STORE=postgresql://USER@HOST/DATABASE")


@contextmanager
def postgres_is_there() -> Generator[None, None, None]:
    """Say what to install where the extra is missing."""
    try:
        yield
    except ImportError as error:
        raise StoreProblem(
            f"PostgreSQL needs what is not installed: {error.name}",
            way_out="pip install 'adjourn[postgres]'",
        ) from error


def living(root: str) -> dict[str, SupervisorRecord]:
    """Return the supervisors that are alive, on all machines, and what each says of itself."""
    if is_shared(root):
        # Needs an optional package
        from adjourn.wiring.shared import living_everywhere

        return living_everywhere(root)
    return supervisors.living(root)


def has_worker(root: str, pool: str) -> bool:
    """Say whether a worker of that pool is alive."""
    return any(about.pool == pool for about in living(root).values())


def find_unattended(root: str, tasks: Sequence[Task], *, now: int) -> list[Task]:
    """Return those of the tasks that are queued while no worker is alive for them."""
    queued = [
        task
        for task in tasks
        if task.state is TaskState.QUEUED and now - task.updated_at > _MOMENT_MS
    ]
    if not queued:
        return []
    pools = {about.pool for about in living(root).values()}
    return [task for task in queued if task.spec.pool not in pools]


def open_decisions(root: str) -> Decisions:
    """Open the store and return what takes decisions; it starts no run and settles none."""
    return Decisions(open_context(root))


def open_context(root: str, *, as_worker: bool = False, for_asking: bool = False) -> Context:
    """Open the store, and put together what the parts of the controller work with.

    A part of adjourn inside a run speaks for the worker that runs it. A process that only asks,
    inside a run, needs not see the user's state directory: a sandbox may hide it.
    """
    if not is_shared(root):
        return Context(
            open_sqlite(root, for_asking=for_asking),
            clock=now,
            new_id=new_id,
            find_runner=_find_runner,
            open_processes=lambda: _open_processes(root),
            open_gate=lambda: _open_gate(root),
            authoriser=FileAuthoriser(root),
            signatures=FileSignatures(root),
            copy_texts=_copy_texts,
        )
    with postgres_is_there():
        # Needs an optional package
        from adjourn.wiring.shared import DatabaseAuthoriser, open_shared

        store = open_shared(root, as_worker=as_worker)
    return Context(
        store,
        clock=store.now,
        new_id=new_id,
        find_runner=_find_runner,
        open_processes=lambda: _open_shared_processes(root, store),
        open_gate=lambda: _open_gate(root),
        authoriser=DatabaseAuthoriser(root, store),
        signatures=FileSignatures(root),
        copy_texts=_copy_texts,
    )


def open_store(root: str) -> "SqliteStore | PostgresStore":
    """Open a store only to read it."""
    if not is_shared(root):
        return open_sqlite(root)
    with postgres_is_there():
        # Needs an optional package
        from adjourn.wiring.shared import open_shared

        return open_shared(root)


def name_of_store(root: str) -> str:
    """Return what people call a store: its directory, or the database."""
    if not is_shared(root):
        return root
    # Needs an optional package
    from adjourn.wiring.shared import named

    try:
        return named(root)
    except AdjournError:  # its address cannot be read, or is not followed
        return root


def _copy_texts(call: "Call", workspace: str) -> dict[str, str | None]:
    # Most who open a store only decide
    from adjourn.workspace.file_copies import copy_texts

    return copy_texts(call, workspace)


def _find_runner(name: str) -> "Runner":
    """Return the runner of that name. Loaded here: most who open a store only decide."""
    # Most who open a store only decide
    from adjourn.runners import find_runner

    return find_runner(name)


def _open_processes(root: str) -> "Processes":
    # Loaded here: most who open a store only decide
    from adjourn.process.processes import LocalProcesses

    return LocalProcesses(root, left_by=left_by)


def _open_shared_processes(root: str, store: "PostgresStore") -> "Processes":
    # Most who open a store only decide
    from adjourn.process.processes import SharedProcesses

    return SharedProcesses(root, left_by=left_by, kept_start=store.kept_start)


def _open_gate(root: str) -> "Gate":
    """Make what judges commands. Loaded here: most who open a store only decide."""
    # Most who open a store only decide
    from adjourn.wiring.surroundings import open_gate

    return open_gate(root)


def left_by(root: str, task_id: str) -> "Left | None":
    """Return what a process left that asked by files, if it waits."""
    if not os.path.lexists(checkpoint_path(root, task_id)):
        return None
    # Most processes leave no files
    from adjourn.clarifications.protocol_files import read_left

    return read_left(root, task_id)


def open_sqlite(
    root: str, *, for_asking: bool = False, bound_as: str | None = None
) -> "SqliteStore":
    """Open the store of a directory. It changes only if it is bound to this machine and user."""
    # A shared store does without
    from adjourn.stores.sqlite.binding import Home
    from adjourn.stores.sqlite.store import SqliteStore

    home = Home(directory=state_directory(os.environ), key=store_key(), is_for_asking=for_asking)
    return SqliteStore(root, home=home, bound_as=bound_as)


def has_responses(root: str) -> bool:
    """Say whether a response file may lie in the store, or elsewhere; nothing is read for it."""
    try:
        return any(
            name.endswith((RESPONSE, OTHER_RESPONSE))
            for name in os.listdir(clarifications_directory(root))
        )
    except OSError:
        return False

"""Starts the shims of one supervisor: each with an environment of its own, and nothing of an outer run."""

import os
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol

from adjourn.clarifications.log import VERBOSE
from adjourn.controller.runs import Claimed
from adjourn.core.task import Task
from adjourn.files import private_directory
from adjourn.process.forkserver import ForkServer
from adjourn.process.look import search_path
from adjourn.process.shim import Shim, ShimSpec
from adjourn.user_state import state_directory

RUN_KEY = "ADJOURN_RUN_KEY"  # names the variable by which a process shows its database login of which task it is
NO_FILES: Mapping[str, str] = MappingProxyType({})
_OWN = "adjourn"


class Warmth(Protocol):
    """Has the slow modules of our own agent imported already."""

    def fork_shim(self, spec: ShimSpec) -> Shim | None:
        """Fork a shim whose child goes on as Python, or return None where that cannot be done just now."""
        ...

    def drop(self) -> None:
        """Let go of what was imported."""
        ...


class Shims:
    """Forks shims, for our own agent from where it is warm."""

    def __init__(self, forks: ForkServer, *, root: str, own: str | None) -> None:
        self._forks = forks
        self._root = root
        self._own = own
        self._warmth: Warmth | None = None

    def keep_warm(self, warmth: Warmth) -> None:
        """Fork our own agent from where its slow modules are imported already."""
        self._warmth = warmth

    def close(self) -> None:
        """Fork nothing any more."""
        if self._warmth:
            self._warmth.drop()
        self._forks.close()

    def start(  # noqa: PLR0913 -- one for each thing that a shim needs
        self,
        claimed: Claimed,
        *,
        place: str,
        argv: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str],
        files: Mapping[str, str] = NO_FILES,
        grant: bytes = b"",
        timeout: float | None = None,
        deadline: float | None = None,
    ) -> Shim:
        """Start a shim that waits at its gate to run a claimed call; its environment has this on top of what every child has."""
        grace = _grace(claimed.task, os.environ)
        first = directory_of_own(self._root, self._own) if self._own else None
        inherited = child_environment(claimed, os.environ, root=self._root, path=first, grace=grace)
        spec = ShimSpec(
            run_dir=place,
            argv=argv,
            cwd=cwd,
            env={**inherited, **env},
            files=dict(files),
            own=self._own or "",
            grace=grace,
            timeout=timeout,
            grant=grant,
            deadline=deadline,
        )
        return self._warm(claimed.task, spec) or self._forks.fork_shim(spec)

    def _warm(self, task: Task, spec: ShimSpec) -> Shim | None:
        is_ours = task.spec.runner == "agent" and spec.argv[0] == "adjourn"
        return self._warmth.fork_shim(spec) if self._warmth and is_ours else None


def directory_of_own(root: str, own: str) -> str:
    """Return a directory for PATH that holds this very adjourn and no other program, so that it shadows none."""
    place = private_directory(os.path.join(root, "bin"))
    link = os.path.join(place, _OWN)
    names = os.listdir(place)
    for name in names:
        if name != _OWN:
            with suppress(OSError):  # a directory is no program, and somebody else may have been faster
                os.unlink(os.path.join(place, name))
    if _OWN not in names or not os.path.islink(link) or os.readlink(link) != own:
        draft = os.path.join(root, f"bin.{os.getpid()}")
        with suppress(FileNotFoundError):
            os.unlink(draft)
        os.symlink(own, draft)
        os.rename(draft, link)
    return place


def _grace(task: Task, environment: Mapping[str, str]) -> float:
    """Return how long a process has after its interrupt: inside a run less than the outer one, or it would be killed first."""
    try:
        return min(task.spec.grace, float(environment["ADJOURN_GRACE"]) / 2)
    except (KeyError, ValueError):
        return task.spec.grace


def child_environment(
    claimed: Claimed, inherited: Mapping[str, str], *, root: str, path: str | None, grace: float
) -> dict[str, str]:
    """Return the environment of a run's process: nothing of an outer run, and no approval that was not given to this one."""
    environment = {
        name: value
        for name, value in inherited.items()
        if name == VERBOSE or (name != "AUTO_APPROVAL" and not name.startswith("ADJOURN_"))
    }
    environment["PATH"] = search_path(path, environment)
    run = claimed.run
    ours = {"STORE": root, "STATE": state_directory(inherited)}
    ours |= {"TASK_ID": run.task_id, "RUN_ID": run.id, "CALL_ID": claimed.call.id, "GRACE": f"{grace:g}"}
    return environment | {f"ADJOURN_{name}": value for name, value in ours.items()}

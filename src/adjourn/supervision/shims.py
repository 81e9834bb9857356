"""Starts the shims of one supervisor.

Each with an environment of its own, and nothing of an outer run.
"""

import os
import select
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from adjourn.clarifications.log import VERBOSE
from adjourn.controller.runs import Claimed
from adjourn.core.call import Call
from adjourn.core.task import Run, Task
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import Shim, ShimSpec
from adjourn.system.files import private_directory
from adjourn.system.user_state import state_directory
from adjourn.workspace.files import search_path

# Names the variable by which a process shows its database login of which task it is
RUN_KEY = "ADJOURN_RUN_KEY"
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
        """Start a shim that waits at its gate to run a claimed call.

        Its environment has this on top of what every child has.
        """
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
            # A directory is no program, and somebody else may have been faster
            with suppress(OSError):
                os.unlink(os.path.join(place, name))
    if _OWN not in names or not os.path.islink(link) or os.readlink(link) != own:
        draft = os.path.join(root, f"bin.{os.getpid()}")
        with suppress(FileNotFoundError):
            os.unlink(draft)
        os.symlink(own, draft)
        os.rename(draft, link)
    return place


def _grace(task: Task, environment: Mapping[str, str]) -> float:
    """Return how long a process has after its interrupt.

    Inside a run less than the outer one, or it would be killed first.
    """
    try:
        return min(task.spec.grace, float(environment["ADJOURN_GRACE"]) / 2)
    except (KeyError, ValueError):
        return task.spec.grace


def child_environment(
    claimed: Claimed, inherited: Mapping[str, str], *, root: str, path: str | None, grace: float
) -> dict[str, str]:
    """Return the environment of a run's process.

    Nothing of an outer run, and no approval that was not given to this one.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        if name == VERBOSE or (name != "AUTO_APPROVAL" and not name.startswith("ADJOURN_"))
    }
    environment["PATH"] = search_path(path, environment)
    run = claimed.run
    ours = {"STORE": root, "STATE": state_directory(inherited)}
    ours |= {
        "TASK_ID": run.task_id,
        "RUN_ID": run.id,
        "CALL_ID": claimed.call.id,
        "GRACE": f"{grace:g}",
    }
    return environment | {f"ADJOURN_{name}": value for name, value in ours.items()}


FIRST_PAUSE = 0.25  # seconds; it doubles before it is used


class UnderWay:
    """A shim that runs something, and how often it was told to stop."""

    def __init__(self, shim: Shim, *, place: str) -> None:
        self.place = place
        self._shim = shim
        self.told = 0

    def fileno(self) -> int:
        """Return what to poll for its end."""
        return self._shim.fileno()

    @property
    def is_gone(self) -> bool:
        """Whether the shim has left."""
        return self._shim.wait(0)

    @cached_property
    def stayed_out(self) -> bool:
        """Whether the shim died with its gate open and never went through.

        It can be seen once, before we let go.
        """
        return self._shim.stayed_out()

    def heed(self, wanted: int) -> None:
        """Forward one interrupt for the first request to stop, and kill at the second."""
        if wanted and not self.told:
            self._shim.interrupt()
        if wanted > 1 and self.told <= 1:
            self._shim.kill()
        self.told = max(self.told, min(wanted, 2))

    def leave(self) -> None:
        """Let go of the shim."""
        self.stayed_out  # noqa: B018 -- it is kept once it was seen
        self._shim.close()


class Execution(UnderWay):
    """A call of an agent that runs beside it."""

    def __init__(self, call: Call, shim: Shim, *, place: str) -> None:
        super().__init__(shim, place=place)
        self.call = call


class Active(UnderWay):
    """A run under way, and the call that runs beside its process, if one does."""

    def __init__(self, run: Run, shim: Shim, *, place: str, is_driven: bool) -> None:
        super().__init__(shim, place=place)
        self.run = run
        self.is_driven = is_driven
        self.execution: Execution | None = None
        # A call beside it that could not be started is tried again at `retry_at`, and later each
        # time.
        self.retry_at, self.retry_pause = 0.0, FIRST_PAUSE
        self.failed_starts = 0
        self.shortages: set[str] = set()  # why no call could be started since the last that ran
        self.is_in_doubt = False  # whether the store failed while a call beside it was to begin
        self._has_left = False
        self._poll = select.epoll() if is_driven else None
        if self._poll:
            self._poll.register(shim.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return what to poll: readable when the run's process has left, or a call that runs beside it."""
        return self._poll.fileno() if self._poll else super().fileno()

    def begin(self, execution: Execution) -> None:
        """Have a call run beside the process."""
        self.execution = execution
        if self._poll:
            self._poll.register(execution.fileno(), select.EPOLLIN)

    def end(self, execution: Execution) -> None:
        """Let go of the call that has run."""
        self.execution = None
        if self._poll:
            self._poll.unregister(execution.fileno())
        execution.leave()

    def heed(self, wanted: int) -> None:
        """Tell the process and what runs beside it to stop."""
        super().heed(wanted)
        if self.execution:
            self.execution.heed(wanted)

    def has_left(self) -> bool:
        """Say whether the process has left; from then on only what runs beside it is watched."""
        if self._poll and not self._has_left and self.is_gone:
            self._poll.unregister(self._shim.fileno())
            self._has_left = True
        return self._has_left if self._poll else self.is_gone

    def leave(self) -> None:
        """Let go of the shims."""
        if self.execution:
            self.execution.leave()
        if self._poll:
            self._poll.close()
        super().leave()

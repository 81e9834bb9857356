"""Starts the shims of one supervisor, and holds those that run."""

import os
import select
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from adjourn.clarifications.log import SHOW_CALLS, VERBOSE
from adjourn.controller.runs import Claimed
from adjourn.core.call import Call
from adjourn.core.task import Run
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import Shim, ShimSpec
from adjourn.settings.config import EXIT_CODES, PAUSE_ON_APPROVAL
from adjourn.system.files import private_directory
from adjourn.system.machine import state_directory
from adjourn.workspace.command_files import search_path

if TYPE_CHECKING:  # only workers have one, and starting a command is a hot path
    from adjourn.process.forks.warm import WarmForks

# Names the variable with which a process shows its database login whose task it is
RUN_KEY = "ADJOURN_RUN_KEY"
_OF_THE_AGENT = "ADJOURN_AGENT_"  # how the settings of the built-in agent begin
_HANDED_DOWN = frozenset(
    {SHOW_CALLS, VERBOSE, PAUSE_ON_APPROVAL, EXIT_CODES, "ADJOURN_CLAUDE", "ADJOURN_CODEX"}
)
NO_FILES: Mapping[str, str] = MappingProxyType({})
_OWN = "adjourn"
_LINK_TRIES = 100  # each fails only if another supervisor tidies up in this very moment
_KILL = 2  # requests to stop: the second kills


class Shims:
    """Starts shims; those of our own agent from where its modules are imported already."""

    def __init__(self, forks: ForkServer, *, root: str, own: str) -> None:
        self._forks = forks
        self._root = root
        self._own = own
        self.warm_forks: WarmForks | None = None
        self.warm_runner = ""  # whose drivers are forked there

    def close(self) -> None:
        """Fork nothing any more."""
        if self.warm_forks:
            self.warm_forks.drop()
        self._forks.close()

    def start(
        self,
        claimed: Claimed,
        *,
        directory: str,
        argv: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str],
        files: Mapping[str, str] = NO_FILES,
        grant: bytes = b"",
        timeout: float | None = None,
        deadline: float | None = None,
    ) -> Shim:
        """Start a shim that waits at its gate to run a claimed call.

        Its environment is what every child has, and `env` on top.
        """
        task = claimed.task
        # Inside a run, less time than the outer one has: else that is killed before this one ends
        try:
            grace = min(task.spec.grace, float(os.environ["ADJOURN_GRACE"]) / 2)
        except (KeyError, ValueError):
            grace = task.spec.grace
        first = directory_of_own(self._root, self._own) if self._own else None
        inherited = child_environment(claimed, os.environ, root=self._root, path=first, grace=grace)
        spec = ShimSpec(
            run_dir=directory,
            argv=argv,
            cwd=cwd,
            env={**inherited, **env},
            files=dict(files),
            own=self._own,
            grace=grace,
            timeout=timeout,
            grant=grant,
            deadline=deadline,
        )
        shim: Shim | None = None
        if self.warm_forks and task.spec.runner == self.warm_runner and spec.argv[0] == "adjourn":
            shim = self.warm_forks.fork_shim(spec)
        return shim or self._forks.fork_shim(spec)


def directory_of_own(root: str, own: str) -> str:
    """Return a directory for PATH with this very adjourn and no other program, to shadow none."""
    directory = private_directory(os.path.join(root, "bin"))
    link = os.path.join(directory, _OWN)
    names = os.listdir(directory)
    for name in names:
        if name != _OWN:
            # A directory is no program, and somebody else may have been faster
            with suppress(OSError):
                os.unlink(os.path.join(directory, name))
    if _OWN not in names or not os.path.islink(link) or os.readlink(link) != own:
        # Not beside the database: there a link closes the store, also to its readers
        draft = os.path.join(directory, f"{_OWN}.{os.getpid()}")
        for tries_left in reversed(range(_LINK_TRIES)):
            try:
                os.symlink(own, draft)
                os.rename(draft, link)
                break
            except FileNotFoundError:  # another supervisor removed the draft
                if not tries_left:
                    raise
    return directory


def child_environment(
    claimed: Claimed, inherited: Mapping[str, str], *, root: str, path: str | None, grace: float
) -> dict[str, str]:
    """Return the environment of a run's process.

    Nothing of an outer run, and no approval that was not given to this one. The user's settings
    are handed down, so that what a run starts under adjourn is set up as the run itself.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        if name in _HANDED_DOWN
        or name.startswith(_OF_THE_AGENT)
        or (name != "AUTO_APPROVAL" and not name.startswith("ADJOURN_"))
    }
    environment["PATH"] = search_path(path, environment)
    return environment | {
        "ADJOURN_STORE": root,
        "ADJOURN_STATE": state_directory(inherited),
        "ADJOURN_TASK_ID": claimed.run.task_id,
        "ADJOURN_RUN_ID": claimed.run.id,
        "ADJOURN_CALL_ID": claimed.call.id,
        "ADJOURN_GRACE": f"{grace:g}",
    }


class RunningShim:
    """A shim that runs something, and how often it was told to stop."""

    def __init__(self, shim: Shim, *, directory: str) -> None:
        self.directory = directory
        self.stop_requests = 0
        self._shim = shim
        self._never_started: bool | None = None  # what was seen when we let go

    def fileno(self) -> int:
        """Return the descriptor that is readable once the shim is gone."""
        return self._shim.fileno()

    def is_gone(self) -> bool:
        """Return whether the shim has left."""
        return self._shim.wait(0)

    def has_never_started(self) -> bool:
        """Return whether the shim never went through its gate, and never will."""
        if self._never_started is None:
            return self._shim.has_never_started()
        return self._never_started

    def stop(self, requests: int) -> None:
        """Interrupt at the first of so many requests to stop, and kill at the second."""
        if requests and not self.stop_requests:
            self._shim.interrupt()
        if requests >= _KILL > self.stop_requests:
            self._shim.kill()
        self.stop_requests = max(self.stop_requests, min(requests, _KILL))

    def close(self) -> None:
        """Let go of the shim."""
        if self._never_started is None:
            self._never_started = self._shim.has_never_started()
        self._shim.close()


class RunningCall(RunningShim):
    """A call of an agent that runs beside its process."""

    def __init__(self, call: Call, shim: Shim, *, directory: str) -> None:
        super().__init__(shim, directory=directory)
        self.call = call


class ActiveRun(RunningShim):
    """A run whose process lives, and the call that runs beside it, if one does."""

    def __init__(self, run: Run, shim: Shim, *, directory: str, is_driven: bool) -> None:
        super().__init__(shim, directory=directory)
        self.run = run
        self.is_driven = is_driven
        self.call: RunningCall | None = None
        # A call that could not be started is tried again at `retry_at`, and later each time
        self.retry_at, self.retries = 0.0, 0
        self.failed_starts = 0
        self.shortages: set[str] = set()  # why no call could be started since the last that ran
        self.is_in_doubt = False  # whether the store failed while a call was to begin
        self._has_left = False
        self._poll = select.epoll() if is_driven else None
        if self._poll:
            self._poll.register(shim.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor that is readable once the process has left, or its call."""
        return self._poll.fileno() if self._poll else super().fileno()

    def add_call(self, call: RunningCall) -> None:
        """Watch a call that runs beside the process."""
        self.call = call
        if self._poll:
            self._poll.register(call.fileno(), select.EPOLLIN)

    def remove_call(self, call: RunningCall) -> None:
        """Let go of the call that has run."""
        self.call = None
        if self._poll:
            self._poll.unregister(call.fileno())
        call.close()

    def stop(self, requests: int) -> None:
        """Stop the process and its call."""
        super().stop(requests)
        if self.call:
            self.call.stop(requests)

    def notice_exit(self) -> bool:
        """Return whether the process has left; from then on only its call is polled."""
        if self._poll is None:
            return self.is_gone()
        if not self._has_left and self.is_gone():
            self._poll.unregister(self._shim.fileno())
            self._has_left = True
        return self._has_left

    def kill(self) -> None:
        """Kill the process and its call at once."""
        self.stop(_KILL)

    def close(self) -> None:
        """Let go of the shims."""
        if self.call:
            self.call.close()
        if self._poll:
            self._poll.close()
        super().close()

"""A second fork server that has slow modules imported.

What is forked from it need not load them again.
"""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Sequence

import msgspec

from adjourn.core.backoff import backoff
from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import Pinned
from adjourn.process.shim import MachineFailed, Shim, ShimFailed, ShimSpec

_GROWN = 1.5  # times its first size
_MOST_FORKS = 1_000
_PAUSE, _LONGEST_PAUSE = 1.0, 600.0  # seconds
_WARMING_LIMIT = 120.0  # seconds; it takes a few, and many on a machine that has no time for it

Files = Callable[[], Sequence[str]]  # returns what the modules are made of


class WarmServer(ForkServer):
    """A fork server that reports when it has imported its modules."""

    _is_replaceable = False  # the next one is made by WarmForks

    def __init__(self, channel: socket.socket, *, pid: int, pinned: Pinned | None = None) -> None:
        super().__init__(channel, pid=pid, pinned=pinned)
        self._is_ready = False
        self.is_gone = False  # whether it died before it was ready, or was stopped
        self._deadline = time.monotonic() + _WARMING_LIMIT
        self._size = 0

    def check_ready(self) -> bool:
        """Return whether it has imported everything, without waiting for it."""
        if (
            not (self._is_ready or self.is_gone)
            and self._channel in select.select([self._channel], [], [], 0)[0]
        ):
            try:
                self._is_ready = self._channel.recv(1) != b""
            except OSError:
                self._is_ready = False
            self.is_gone = not self._is_ready
            self._size = _resident(self.pid)
        return self._is_ready

    def check_stopped(self) -> bool:
        """Kill one that has not imported everything for so long that it must be stopped."""
        is_late = not self.check_ready() and time.monotonic() > self._deadline
        if is_late and not self.is_gone:
            self._abandon()
            self.is_gone = True
        return is_late

    def has_grown(self) -> bool:
        """Return whether it holds much more than what it imported."""
        return _resident(self.pid) > _GROWN * self._size


class WarmForks:
    """Keeps one warm server for a program that is slow to import and often started."""

    def __init__(
        self, forks: ForkServer, *, modules: Sequence[str], rehearsal: str, entry: str, files: Files
    ) -> None:
        self._entry = entry
        self._forks = forks
        self._modules = modules
        self._rehearsal = rehearsal
        self._find_files = files
        self._files: Sequence[str] = ()
        self._made_from: object = None
        self._server: WarmServer | None = None
        self._count = 0
        # When to make the next one after some that died while they warmed, and how many did
        self._not_before, self._failures = 0.0, 0

    def fork_shim(self, spec: ShimSpec) -> Shim | None:
        """Fork a shim from the warm server, or return None if no server runs now."""
        server = self.server()
        if server is None:
            return None
        try:
            return server.fork_shim(msgspec.structs.replace(spec, entry=self._entry))
        except MachineFailed:
            self.drop()
            raise  # it may have forked a shim: a second one must not wait at the same gate
        except ShimFailed:
            self.drop()
            return None

    def server(self) -> WarmServer | None:
        """Return the warm server, or None while none runs.

        Then one is being made ready, for the next time.
        """
        if self._server and (
            self._server.has_hung_up()
            or self._server.check_stopped()
            or self._is_stale(self._server)
        ):
            self._drop_stale(self._server)
        if self._server is None and time.monotonic() >= self._not_before:
            self._begin()
        if self._server is None or not self._server.check_ready():
            return None
        self._failures = 0
        self._count += 1
        return self._server

    def drop(self) -> None:
        """Let the warm server go; what it has forked is not disturbed."""
        if self._server:
            self._server.close()
        self._server = None

    def _drop_stale(self, server: WarmServer) -> None:
        """Let a server go that is dead or out of date.

        After one that died while it warmed, wait longer each time.
        """
        if not server.check_ready() and server.is_gone:
            self._failures += 1
            pause = backoff(self._failures, first=_PAUSE, longest=_LONGEST_PAUSE)
            self._not_before = time.monotonic() + pause
        self.drop()

    def _is_stale(self, server: WarmServer) -> bool:
        too_old = self._count >= _MOST_FORKS or _stamps(self._files) != self._made_from
        return too_old or (server.check_ready() and server.has_grown())

    def _begin(self) -> None:
        self._files, self._count = self._find_files(), 0
        self._made_from = _stamps(self._files)
        # Without one everything works as well, only slower
        with contextlib.suppress(OSError, ShimFailed):
            self._server = self._forks.fork_warm_server(
                self._modules, WarmServer, rehearsal=self._rehearsal
            )


def _stamps(files: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return what changes whenever one of the files does."""
    stamps: list[tuple[int, int] | None] = []
    for path in files:
        try:
            found = os.stat(path)
            stamps.append((found.st_mtime_ns, found.st_size))
        except OSError:
            stamps.append(None)
    return stamps


def _resident(pid: int) -> int:
    """Return how many pages of a process are in memory."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1])
    except OSError:
        return 0

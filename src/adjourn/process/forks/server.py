"""The fork server: forks shims, and kills what a killed shim left behind."""

import contextlib
import gc
import os
import select
import signal
import socket
import time
from importlib import import_module
from typing import NoReturn

from adjourn.process import linux
from adjourn.process.cgroup import remove_stale, usable_folder
from adjourn.process.forks.wire import (
    ForkRequest,
    WarmRequest,
    receive_request,
    send_refusal,
    send_reply,
)
from adjourn.process.linux import close_all_but
from adjourn.process.shim_side.life import live
from adjourn.process.tree import children, kill_children
from adjourn.system.poll import Signals

_UNEXPECTED = 70
_LOOKS, _MOMENT = 100, 0.01
_HARMLESS = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
)


class ForkServerLoop:
    """Serves one supervisor; once that is gone, stays only as long as a shim of its lives."""

    def __init__(self, channel: socket.socket) -> None:
        linux.rename_process("adjourn-forks")
        linux.become_subreaper()
        self._channel = channel
        self._signals = Signals(signal.SIGCHLD)
        self._cgroups = usable_folder()
        self._pid = os.getpid()
        self._shims: set[int] = set()
        self._warm_ones: set[int] = set()
        self._listening = True
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._poll.register(self._signals, select.POLLIN)
        gc.freeze()  # what a collection never touches stays shared with every shim

    def serve(self) -> None:
        """Fork shims as asked, until the supervisor and the last shim are gone."""
        while self._listening or self._shims or self._warm_ones:
            ready = [fd for fd, _ in self._poll.poll()]
            self._signals.drain()
            if self._reap_any_killed():
                kill_children(self._reap_orphans, spare=self._shims | self._warm_ones)
                self._remove_stale_groups()
            if self._channel.fileno() in ready:
                self._answer_request()
        self._remove_stale_groups()

    def _reap_any_killed(self) -> bool:
        """Reap the dead; return whether a shim failed among them, and so did not end its tree."""
        killed = False
        with contextlib.suppress(ChildProcessError):
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                killed |= dead[0] in self._shims and dead[1] != 0
                self._shims.discard(dead[0])
                if dead[0] in self._warm_ones:
                    self._warm_ones.discard(dead[0])
                    # What it had forked is this server's from now on
                    self._shims |= set(children()) - self._warm_ones
        return killed

    def _remove_stale_groups(self) -> None:
        if self._cgroups:
            # Out of descriptors, say: the next round removes them
            with contextlib.suppress(OSError):
                remove_stale(self._cgroups)

    def _reap_orphans(self) -> bool:
        """Reap the dead; return whether orphans are left, which a killed shim left to us."""
        self._reap_any_killed()
        return not (self._shims | self._warm_ones).issuperset(children())

    def _answer_request(self) -> None:
        # The supervisor died meanwhile; its shim finds the gate abandoned
        with contextlib.suppress(BrokenPipeError):
            try:
                request = receive_request(self._channel)
            except OSError as error:
                send_refusal(self._channel, error)
                return
            if request is None:
                self._listening = False
                self._poll.unregister(self._channel)
            elif isinstance(request, WarmRequest):
                self._fork_warm_server(request)
            else:
                self._fork_shim(request)

    def _fork_warm_server(self, warming: WarmRequest) -> None:
        """Fork a copy of this server that imports modules and then serves a channel of its own."""
        try:
            pid = os.fork()
        except OSError as error:
            send_refusal(self._channel, error)
            return
        finally:
            if os.getpid() != self._pid:
                self._be_warm(warming)
            os.close(warming.channel)
        self._warm_ones.add(pid)
        self._reply(pid)

    def _be_warm(self, warming: WarmRequest) -> NoReturn:
        """Import what was asked for, with nothing of the environment at hand, and serve."""
        status = _UNEXPECTED
        try:
            os.setsid()
            self._signals.close()
            close_all_but(warming.channel)
            for name in os.environ.keys() - _HARMLESS:
                del os.environ[name]
            for name in warming.modules:
                import_module(name)
            _rehearse(warming.rehearsal)
            close_all_but(warming.channel)
            if _is_alone():
                channel = socket.socket(fileno=warming.channel)
                channel.send(b"!")
                ForkServerLoop(channel).serve()
                status = 0
        finally:
            os._exit(status)

    def _fork_shim(self, request: ForkRequest) -> None:
        try:
            pid = os.fork()
            if pid == 0:
                self._channel.close()
                self._signals.close()
                live(request.spec, gate=request.gate, report=request.report, cgroups=self._cgroups)
        except OSError as error:
            send_refusal(self._channel, error)
            return
        finally:
            # Before the reply: from then on the shim alone holds its end of the gate.
            os.close(request.gate)
            os.close(request.report)
        self._shims.add(pid)
        self._reply(pid)

    def _reply(self, pid: int) -> None:
        """Hand over a child, or report why not: then nobody opens its gate, and it leaves."""
        # It is this process's child, not yet reaped: no other process can have its pid.
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            send_refusal(self._channel, error)
            return
        try:
            send_reply(self._channel, pidfd=pidfd)
        finally:
            os.close(pidfd)


def _rehearse(name: str) -> None:
    """Call what builds the rest; where it fails, that is built after the fork, as without it."""
    module, _, function = name.partition(":")
    if module:
        with contextlib.suppress(Exception):
            getattr(import_module(module), function)()
    gc.collect()


def _is_alone() -> bool:
    """Return whether this process has one thread.

    A fork of it has none of the others, and whatever lock they held for ever.
    """
    for _ in range(_LOOKS):
        if len(os.listdir("/proc/self/task")) == 1:
            return True
        time.sleep(_MOMENT)  # one that has ended is seen for a moment longer
    return False

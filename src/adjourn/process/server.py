"""The fork server, seen from inside: forks shims, and ends what a shim left behind that was killed."""

import contextlib
import gc
import os
import select
import signal
import socket

from adjourn.process import linux
from adjourn.process.cgroup import usable_folder
from adjourn.process.identity import Seen
from adjourn.process.inside import live
from adjourn.process.signals import SignalBox
from adjourn.process.tree import kill_all
from adjourn.process.wire import Request, receive_request, send_refusal, send_reply


class Server:
    """Serves one supervisor; once that is gone, stays only as long as a shim of its lives."""

    def __init__(self, channel: socket.socket) -> None:
        linux.rename_process("adjourn-forks")
        linux.become_subreaper()
        self._channel = channel
        self._signals = SignalBox((signal.SIGCHLD,))
        self._cgroups = usable_folder()
        self._shims: set[int] = set()
        self._orphans = False
        self._listening = True
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._poll.register(self._signals, select.POLLIN)
        gc.freeze()  # what a collection never touches stays shared with every shim

    def serve(self) -> None:
        """Fork shims as asked, until the supervisor and the last shim are gone."""
        while self._listening or self._shims:
            ready = [fd for fd, _ in self._poll.poll()]
            self._signals.clear()
            self._reap()
            if self._orphans:
                self._orphans = bool(kill_all(self._is_orphan))
            if self._channel.fileno() in ready:
                self._answer()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                # A shim that ended well has ended its tree. Of one that was killed, the orphans are now this process's children.
                self._orphans |= dead[0] in self._shims and dead[1] != 0
                self._shims.discard(dead[0])

    def _is_orphan(self, process: Seen) -> bool:
        return process.parent == os.getpid() and process.pid not in self._shims

    def _answer(self) -> None:
        request = receive_request(self._channel)
        if request is None:
            self._listening = False
            self._poll.unregister(self._channel)
            return
        with contextlib.suppress(BrokenPipeError):  # the supervisor died meanwhile; its shim finds the gate abandoned
            self._hand_over(request)

    def _hand_over(self, request: Request) -> None:
        try:
            pid = self._fork(request)
        except OSError as error:
            send_refusal(self._channel, error)
            return
        finally:
            # Before the reply: from then on the shim alone holds its end of the gate.
            os.close(request.gate)
            os.close(request.report)
        # The shim is this process's child, not yet reaped: no other process can have its pid.
        pidfd = os.pidfd_open(pid)
        send_reply(self._channel, pidfd=pidfd)
        os.close(pidfd)

    def _fork(self, request: Request) -> int:
        pid = os.fork()
        if pid == 0:
            self._channel.close()
            self._signals.close()
            live(request.spec, gate=request.gate, report=request.report, cgroups=self._cgroups)
        self._shims.add(pid)
        return pid

"""Forks shims from a small process that has neither store nor threads."""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from threading import Lock
from typing import NoReturn, Self, TypeVar

import msgspec

from adjourn.process.forks.wire import (
    ForkRequest,
    WarmRequest,
    receive_reply,
    send_request,
    send_warming,
)
from adjourn.process.identity import Pinned
from adjourn.process.linux import close_all_but
from adjourn.process.shim import MachineFailed, Ready, Shim, ShimFailed, ShimSpec
from adjourn.system.machine import is_shortage
from adjourn.system.poll import reset_signals

_UNEXPECTED = 70
# Seconds until a server or a shim is taken for stopped. Both need milliseconds; a shim waits for
# the disk, too.
_SERVER_LIMIT, _SHIM_LIMIT = 10.0, 30.0
_MOMENT = 1.0  # seconds that one that was killed has to be gone
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SERVE = """
import sys
sys.path.append(sys.argv[1])
from adjourn.process.forks.client import serve
serve(int(sys.argv[2]))
"""

Server = TypeVar("Server", bound="ForkServer")


class ForkServer:
    """The supervisor's end of its fork server; any thread may use it."""

    _is_replaceable = True

    def __init__(self, channel: socket.socket, *, pid: int, pinned: Pinned | None = None) -> None:
        self.pid = pid
        self._pinned = pinned  # what holds a server that is not our own child
        self._channel = channel
        channel.settimeout(_SERVER_LIMIT)
        self._turn = Lock()

    @classmethod
    def start(cls) -> Self:
        """Fork the server; call it before the store is opened or a thread exists."""
        ours, theirs = socket.socketpair()
        # No signal, least of all the terminal's, may find the server before it is in a session of
        # its own.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                _be_server(theirs)
        except OSError as error:
            sentence = f"this machine has no room for another process: {error.strerror}"
            way_out = "end some processes, or raise `ulimit -u`, and run the command again"
            raise MachineFailed(sentence, way_out=way_out) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        return cls(ours, pid=pid)

    def fork_shim(self, spec: ShimSpec) -> Shim:
        """Return a shim that is ready and waits at its gate, or raise ShimFailed.

        After ShimFailed nothing is left running. A server that has died is replaced first. One that
        dies meanwhile costs this start: it may have forked a shim, which still has to see that its
        gate stays shut. One that does not answer in time is killed, so that it cannot go on with
        this request once it is woken.
        """
        self._require_server()
        # The shim waits until a byte comes through its gate, and leaves if we close it or die. We
        # keep a second hold on the reading end: after the shim's death it tells whether the byte
        # was read.
        reading, gate, threshold, report, reporting = _open_pipes()
        try:
            try:
                with self._turn:
                    pinned = Pinned(self._exchange(ForkRequest(spec, reading, reporting)))
            except TimeoutError:
                self._abandon()
                sentence = f"the fork server did not answer within {_SERVER_LIMIT:g} s"
                raise MachineFailed(sentence) from None
            except ConnectionError:
                raise MachineFailed("the fork server is gone") from None
            except OSError as error:
                failure = MachineFailed if is_shortage(error.errno) else ShimFailed
                raise failure(f"the fork server could not fork: {error.strerror}") from None
            finally:
                os.close(reading)
                os.close(reporting)

            ready = _read_ready(report)
            if ready.record:
                return Shim(pinned, identity=ready.record.identity, gate=gate, threshold=threshold)
            # One that failed leaves. One that is stopped has to be killed: nobody opens its gate,
            # so nothing of its command runs.
            if ready is _STOPPED or not pinned.gone(within=_SHIM_LIMIT):
                pinned.send(signal.SIGKILL)
            pinned.close()
            raise MachineFailed(ready.error) if ready.is_shortage else ShimFailed(ready.error)
        except BaseException:
            os.close(gate)
            os.close(threshold)
            raise
        finally:
            os.close(report)

    def _require_server(self) -> None:
        """Replace a server that is gone; raise MachineFailed if that cannot be done now."""
        if self._is_replaceable and self.has_hung_up():
            with self._turn:
                if self.has_hung_up():
                    self._replace()

    def has_hung_up(self) -> bool:
        """Return whether the server is gone, or does not listen any more."""
        poll = select.poll()
        poll.register(self._channel, 0)
        return bool(poll.poll(0))

    def _replace(self) -> None:
        """Start another server in the place of the dead one.

        By an exec: this process has a store and perhaps threads by now, which no fork may keep.
        """
        from subprocess import DEVNULL, Popen  # seldom needed, and slow to import

        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            sentence = f"the fork server is gone, and no new one can be started: {error.strerror}"
            raise MachineFailed(sentence) from None
        words = [sys.executable, "-I", "-c", _SERVE, _PACKAGES, str(theirs.fileno())]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # as in `start`
        try:
            fds = [theirs.fileno()]
            server = Popen(
                words, cwd="/", pass_fds=fds, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
            )
        except OSError as error:
            ours.close()
            sentence = f"the fork server is gone, and no new one can be started: {error.strerror}"
            raise MachineFailed(sentence) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()
        server.returncode = 0  # nobody waits for it here: we reap it by its pid
        ours.settimeout(_SERVER_LIMIT)
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        self._channel, self.pid = ours, server.pid

    def fork_warm_server(
        self, modules: Sequence[str], kind: type[Server], *, rehearsal: str = ""
    ) -> Server:
        """Return a fork of this server that imports modules, and reports when it has."""
        self._require_server()
        ours, theirs = socket.socketpair()
        try:
            with self._turn:
                send_warming(self._channel, WarmRequest(list(modules), rehearsal, theirs.fileno()))
                pinned = receive_reply(self._channel)
        except BaseException as error:
            ours.close()
            if isinstance(error, TimeoutError):
                self._abandon()
            raise
        finally:
            theirs.close()
        return kind(ours, pid=pid_of(pinned), pinned=Pinned(pinned))

    def _abandon(self) -> None:
        """Kill a server that did not answer.

        Whatever it was asked for, nobody waits for it any more.
        """
        if self._pinned:
            self._pinned.send(signal.SIGKILL)
            return
        # It is our child, and not reaped yet: no other process can have its pid.
        os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # without a descriptor left, it is reaped by nobody
            server = Pinned(os.pidfd_open(self.pid))
            server.gone(within=_MOMENT)
            server.close()
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let the server go; shims that live are not disturbed."""
        self._channel.close()
        if self._pinned:
            self._pinned.close()
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def _exchange(self, request: ForkRequest) -> int:
        """Send a request and return the pidfd in its reply, or raise OSError."""
        try:
            send_request(self._channel, request)
            return receive_reply(self._channel)
        except OSError:
            raise
        except BaseException:
            # Interrupted between question and answer: the next one would get the wrong answer.
            self._channel.shutdown(socket.SHUT_RDWR)
            raise


def pid_of(pidfd: int) -> int:
    """Return the pid of the process that a pidfd stands for."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pid:"))


def _open_pipes() -> list[int]:
    """Return the gate's reading end, its writing end, its reading end again, and a pipe's ends.

    All of them or none.
    """
    opened: list[int] = []
    try:
        opened += os.pipe()
        opened.append(os.dup(opened[0]))
        opened += os.pipe()
    except OSError as error:
        for fd in opened:
            os.close(fd)
        raise MachineFailed(f"there is no room for its pipes: {error.strerror}") from None
    return opened


_STOPPED = Ready(error=f"the shim was not ready within {_SHIM_LIMIT:g} s", is_shortage=True)


def _read_ready(report: int) -> Ready:
    """Return what a shim reports at its gate, or _STOPPED if it reports nothing in time."""
    content = b""
    poll = select.poll()
    poll.register(report, select.POLLIN)
    deadline = time.monotonic() + _SHIM_LIMIT
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(report, 65536)
        if not piece:
            break
        content += piece
    else:
        return _STOPPED
    if not content:  # nothing of the command has run yet, so whatever killed it was not the command
        return Ready(error="the shim was killed before it was ready", is_shortage=True)
    return msgspec.json.decode(content, type=Ready)


def serve(descriptor: int) -> NoReturn:
    """Be a fork server that was started by an exec."""
    _be_server(socket.socket(fileno=descriptor))


def _be_server(channel: socket.socket) -> NoReturn:
    """Turn this fork of the supervisor into its fork server.

    Never return into the supervisor's frames.
    """
    try:
        gc.disable()  # nor run finalizers of what is the supervisor's
        os.setsid()
        reset_signals()
        # Here, for the supervisor has no use for it
        from adjourn.process.forks.server import ForkServerLoop

        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        close_all_but(channel.fileno())
        ForkServerLoop(channel).serve()
        os._exit(0)
    except BaseException:  # noqa: BLE001 nobody above could be told
        import traceback  # seldom needed, and slow to import

        traceback.print_exc()
    finally:
        os._exit(_UNEXPECTED)

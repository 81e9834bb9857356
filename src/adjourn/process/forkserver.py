"""Forks shims from a small process that has neither store nor threads."""

import _socket as socket
import _thread
import contextlib
import gc
import os
import signal
from collections.abc import Sequence
from typing import NoReturn, Self, TypeVar

import msgspec

from adjourn.process.descriptors import close_all_but
from adjourn.process.pinned import Pinned
from adjourn.process.shim import Ready, Shim, ShimFailed, ShimSpec
from adjourn.process.signals import start_afresh
from adjourn.process.wire import Request, Warming, receive_reply, send_request, send_warming

_UNEXPECTED = 70

Server = TypeVar("Server", bound="ForkServer")


class ForkServer:
    """The supervisor's end of its fork server; any thread may use it."""

    def __init__(self, channel: socket.socket, *, pid: int) -> None:
        self.pid = pid
        self._channel = channel
        self._turn = _thread.allocate_lock()

    @classmethod
    def start(cls) -> Self:
        """Fork the server; call it before the store is opened or a thread exists."""
        ours, theirs = socket.socketpair()
        # No signal, least of all the terminal's, may find the server before it is in a session of its own.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                _be_server(theirs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        return cls(ours, pid=pid)

    def fork_shim(self, spec: ShimSpec) -> Shim:
        """Return a shim that is ready and waits at its gate, or raise ShimFailed with nothing left running."""
        reading, gate, threshold, report, reporting = _descriptors()
        try:
            pinned = self._ask(Request(spec, reading, reporting))
            return _made_ready(pinned, gate=gate, threshold=threshold, report=report)
        except BaseException:
            os.close(gate)
            os.close(threshold)
            raise
        finally:
            os.close(report)

    def warmed(self, modules: Sequence[str], kind: type[Server], *, rehearsal: str = "") -> Server:
        """Return a second server with these modules imported, a fork of this one; it says itself when it is ready."""
        ours, theirs = socket.socketpair()
        try:
            with self._turn:
                send_warming(self._channel, Warming(list(modules), rehearsal, theirs.fileno()))
                pinned = receive_reply(self._channel)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        try:
            return kind(ours, pid=pid_of(pinned))
        finally:
            os.close(pinned)

    def close(self) -> None:
        """Let the server go; shims that live are not disturbed."""
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def _ask(self, request: Request) -> Pinned:
        try:
            with self._turn:
                return Pinned(self._answer_to(request))
        except ConnectionError:
            raise ShimFailed("the fork server is gone") from None
        except OSError as error:
            raise ShimFailed(f"the fork server could not fork: {error.strerror}") from None
        finally:
            os.close(request.gate)
            os.close(request.report)

    def _answer_to(self, request: Request) -> int:
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


def _descriptors() -> list[int]:
    """Return both ends of a gate, a second hold on its reading end, and both ends of a pipe; all of them or none."""
    opened: list[int] = []
    try:
        opened += os.pipe()
        opened.append(os.dup(opened[0]))
        opened += os.pipe()
    except OSError as error:
        for fd in opened:
            os.close(fd)
        raise ShimFailed(f"there is no room for its pipes: {error.strerror}") from None
    return opened


def _made_ready(pinned: Pinned, *, gate: int, threshold: int, report: int) -> Shim:
    ready = _read_ready(report)
    if ready.record:
        return Shim(pinned, identity=ready.record.identity, gate=gate, threshold=threshold)
    pinned.gone(within=None)
    pinned.close()
    raise ShimFailed(ready.error)


def _read_ready(report: int) -> Ready:
    content = b""
    while piece := os.read(report, 65536):
        content += piece
    return msgspec.json.decode(content, type=Ready) if content else Ready(error="the shim died before it was ready")


def _be_server(channel: socket.socket) -> NoReturn:
    """Turn this fork of the supervisor into its fork server; never return into the supervisor's frames."""
    try:
        gc.disable()  # nor run finalizers of what is the supervisor's
        os.setsid()
        start_afresh()
        # Loaded here, for the supervisor has no use for it.
        from adjourn.process.server import Server

        os.chdir("/")
        _keep_only(channel.fileno())
        Server(channel).serve()
        os._exit(0)
    except BaseException:  # noqa: BLE001 nobody above could be told
        import traceback

        traceback.print_exc()
    finally:
        os._exit(_UNEXPECTED)


def _keep_only(channel: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    close_all_but(channel)

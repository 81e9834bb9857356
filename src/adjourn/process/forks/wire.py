"""The messages between a supervisor and its fork server, descriptors included."""

import errno
import marshal
import os
import socket
import struct
from typing import NamedTuple

import msgspec

from adjourn.process.shim import ShimSpec

_LENGTH = struct.Struct("=I")  # how long the request is that follows
_DESCRIPTOR = struct.Struct("=i")
_REPLY = struct.Struct("=i")  # the shim's pid, or an error's number below zero


class ForkRequest(NamedTuple):
    """Asks for a shim: the end of the gate that it waits at, and where it reports that it does."""

    spec: ShimSpec
    gate: int
    report: int


class WarmRequest(NamedTuple):
    """Asks for a second server: what it imports and calls first, and its end of its channel."""

    modules: list[str]
    rehearsal: str  # `module:function`
    channel: int


def send_warming(channel: socket.socket, warming: WarmRequest) -> None:
    """Ask for a warm server; the descriptor stays the caller's to close."""
    body = marshal.dumps({"modules": warming.modules, "rehearsal": warming.rehearsal})
    _send(channel, _LENGTH.pack(len(body)), [warming.channel, warming.channel])
    channel.sendall(body)


def send_request(channel: socket.socket, request: ForkRequest) -> None:
    """Ask for a shim; the descriptors stay the caller's to close."""
    # marshal, for argv and environment may hold bytes that are no text, which JSON cannot carry.
    body = marshal.dumps(msgspec.structs.asdict(request.spec))
    _send(channel, _LENGTH.pack(len(body)), [request.gate, request.report])
    channel.sendall(body)


def receive_request(channel: socket.socket) -> ForkRequest | WarmRequest | None:
    """Return the next request, or None if there will be no more.

    Raise OSError if its descriptors did not arrive.
    """
    head, fds = _receive(channel, _LENGTH.size, most=2)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = channel.recv(length, socket.MSG_WAITALL)
    if len(body) < length:
        return None
    if len(fds) < 2:  # noqa: PLR2004 -- gate and report
        raise _none_left(fds)
    gate, report = fds
    wanted = marshal.loads(body)  # noqa: S302 the supervisor made it, and forked this process
    if "modules" in wanted:
        os.close(report)
        return WarmRequest(wanted["modules"], wanted["rehearsal"], gate)
    return ForkRequest(ShimSpec(**wanted), gate, report)


def send_reply(channel: socket.socket, *, pidfd: int) -> None:
    """Hand over the shim."""
    _send(channel, _REPLY.pack(0), [pidfd])


def send_refusal(channel: socket.socket, error: OSError) -> None:
    """Return why there is no shim."""
    channel.sendall(_REPLY.pack(error.errno or -1))


def receive_reply(channel: socket.socket) -> int:
    """Return the shim's pidfd, or raise the OSError that kept it from being forked."""
    body, fds = _receive(channel, _REPLY.size, most=1)
    if len(body) < _REPLY.size:
        raise ConnectionResetError
    (number,) = _REPLY.unpack(body)
    if number:
        raise OSError(number, os.strerror(number))
    if not fds:
        raise _none_left(fds)
    return fds[0]


def _send(channel: socket.socket, body: bytes, fds: list[int]) -> None:
    channel.sendmsg(
        [body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"".join(map(_DESCRIPTOR.pack, fds)))]
    )


def _receive(channel: socket.socket, size: int, *, most: int) -> tuple[bytes, list[int]]:
    """Return what was sent, and the descriptors that came with it."""
    room = socket.CMSG_LEN(most * _DESCRIPTOR.size)
    body, came, _, _ = channel.recvmsg(size, room, socket.MSG_WAITALL | socket.MSG_CMSG_CLOEXEC)
    rights = [
        data
        for level, kind, data in came
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    ]
    whole = [data[: len(data) - len(data) % _DESCRIPTOR.size] for data in rights]
    return body, [fd for data in whole for (fd,) in _DESCRIPTOR.iter_unpack(data)]


def _none_left(fds: list[int]) -> OSError:
    """Return what to raise where a descriptor did not arrive.

    The system drops those that do not fit below the limit.
    """
    for fd in fds:
        os.close(fd)
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE))

"""Wakes the processes that wait for a commit, by a datagram to each one's socket in the store."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_FLOOD = 1_000  # datagrams that are dropped at once


def wake_all(directory: str) -> None:
    """Send every listener a datagram, without waiting for any, and remove the sockets of dead ones.

    It never fails: the commit is on disk, and each listener checks now and then without a wake-up.
    """
    with suppress(OSError):
        names = os.listdir(directory)
        if not names:
            return
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _datagram_socket() as sender:
                for name in names:
                    try:
                        sender.sendto(b"\1", _address(folder, name))
                    except ConnectionRefusedError:
                        _remove(folder, name)
                    except OSError:
                        continue  # a full socket has a wake-up waiting already
        finally:
            os.close(folder)


def _datagram_socket() -> "socket.socket":
    # Importing socket takes 2 ms of a short command; most find nobody who listens.
    import socket

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(0)
    return made


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _address(folder: int, name: str) -> str:
    """Return a short address: a socket's path may have 107 bytes, and a store may lie deeper."""
    return f"/proc/self/fd/{folder}/{name}"


class SocketListener:
    """A socket in the store that gets a datagram after each commit.

    It is there before its owner reads the store, so nothing is missed between reading and waiting.
    A datagram is a reason to read the store again and nothing more: its content is ignored.
    """

    def __init__(self, directory: str) -> None:
        self.trouble: str | None = None
        self._folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = _datagram_socket()
        try:
            self._socket.bind(_address(self._folder, self._name))
            os.chmod(self._name, 0o600, dir_fd=self._folder)
        except OSError as error:
            # No /proc, or a file system without sockets: whoever polls this has to check unwoken.
            self.trouble = f"no socket can be made in {directory}: {error.strerror}"

    def fileno(self) -> int:
        return self._socket.fileno()

    def drain(self) -> None:
        try:
            for _ in range(_FLOOD):  # of more than that some stay for the next time
                self._socket.recv(64)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()
        _remove(self._folder, self._name)
        os.close(self._folder)

"""Tells whoever listens that something was committed, by a datagram after the commit."""

import os
from collections.abc import Callable


def wake_all(directory: str) -> None:
    """Send every listener a datagram. Those who are gone are forgotten; nobody who is slow holds us up.

    It never fails: what happened is on disk, and a wake-up that is lost is made good by the next slow look.
    """
    try:
        names = os.listdir(directory)
        if names:
            _send(directory, names)
    except OSError:
        return


def _send(directory: str, names: list[str]) -> None:
    import socket

    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            for name in names:
                _send_to(sender.sendto, folder, name)
    finally:
        os.close(folder)


def _send_to(send: Callable[[bytes, str], object], folder: int, name: str) -> None:
    try:
        send(b"\1", _address(folder, name))
    except ConnectionRefusedError:
        _forget(folder, name)
    except OSError:
        return  # a full ear has a wake-up waiting already


def _forget(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def _address(folder: int, name: str) -> str:
    """Return a short address: a socket's path may have 107 bytes only, and a store may lie deep."""
    return f"/proc/self/fd/{folder}/{name}"


class Ear:
    """A listener's socket. It is there before the first look, so nothing is missed between look and wait."""

    def __init__(self, directory: str) -> None:
        import socket

        self._folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(_address(self._folder, self._name))
        os.chmod(self._name, 0o600, dir_fd=self._folder)

    def fileno(self) -> int:
        """Return what to poll."""
        return self._socket.fileno()

    def drain(self) -> None:
        """Forget the wake-ups that have come so far."""
        try:
            while self._socket.recv(64):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        _forget(self._folder, self._name)
        os.close(self._folder)

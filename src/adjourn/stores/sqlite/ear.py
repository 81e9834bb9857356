"""Hears that something was committed: by a socket with a name in the store, or by a port where there are none."""

import _socket as socket
import os

from adjourn.stores.sqlite.wake import BY_PORT, HERE, address, forget

_FLOOD = 1_000  # datagrams


class Ear:
    """A listener's socket. It is there before the first look, so nothing is missed between look and wait.

    What it hears is a reason to look and nothing more: whoever else can send to it learns nothing and changes nothing.
    """

    trouble: str | None = None  # it hears as long as it is there

    def __init__(self, directory: str) -> None:
        self._folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket, self._name = _bound(self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def fileno(self) -> int:
        """Return what to poll."""
        return self._socket.fileno()

    def drain(self) -> None:
        """Forget the wake-ups that have come so far; of a flood some stay for the next time."""
        try:
            for _ in range(_FLOOD):
                self._socket.recv(64)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        forget(self._folder, self._name)
        os.close(self._folder)


def _bound(folder: int) -> tuple[socket.socket, str]:
    """Return a socket, and the name in the folder by which it is found."""
    name = f"{os.getpid()}-{os.urandom(4).hex()}"
    if os.environ.get("ADJOURN_WAKE") == "udp":
        return _with_port(folder, name)
    try:
        return _with_name(folder, name)
    except OSError:  # no such sockets, no /proc, or a filesystem that holds none
        return _with_port(folder, name)


def _with_name(folder: int, name: str) -> tuple[socket.socket, str]:
    ear = _silent(socket.AF_UNIX)
    try:
        ear.bind(address(folder, name))
        os.chmod(name, 0o600, dir_fd=folder)
    except OSError:
        ear.close()
        raise
    return ear, name


def _with_port(folder: int, name: str) -> tuple[socket.socket, str]:
    ear = _silent(socket.AF_INET)
    try:
        ear.bind((HERE, 0))
        name = f"{BY_PORT}{ear.getsockname()[1]}-{name}"
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
    except OSError:
        ear.close()
        raise
    return ear, name


def _silent(family: int) -> socket.socket:
    ear = socket.socket(family, socket.SOCK_DGRAM)
    ear.settimeout(0)
    return ear

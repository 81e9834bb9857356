"""Hears that something was committed.

By a socket with a name in the store, or by a port where there are none.
"""

import _socket as socket
import os
from contextlib import closing

BY_PORT = "udp-"  # what begins the name of an ear that listens on a port of this machine
HERE = "127.0.0.1"
_NEWS = b"\1"
_LAST_PORT = 65_535


def wake_all(directory: str) -> None:
    """Send every listener a datagram.

    Those who are gone are forgotten; nobody who is slow holds us up.

    It never fails: what happened is on disk, and a wake-up that is lost is made good by the next
    slow look.
    """
    try:
        names = os.listdir(directory)
        if names:
            _send(directory, names)
    except OSError:
        return


def _send(directory: str, names: list[str]) -> None:
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            _send_to(folder, name)
    finally:
        os.close(folder)


def _send_to(folder: int, name: str) -> None:
    try:
        if name.startswith(BY_PORT):
            _by_port(name)
        else:
            _by_name(folder, name)
    except ConnectionRefusedError:
        forget(folder, name)
    except OSError:
        return  # a full ear has a wake-up waiting already


def _by_name(folder: int, name: str) -> None:
    import _socket as socket

    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
        sender.settimeout(0)
        sender.sendto(_NEWS, address(folder, name))


def _by_port(name: str) -> None:
    import _socket as socket

    port = name.removeprefix(BY_PORT).partition("-")[0]
    if not (port.isascii() and port.isdigit()) or int(port) > _LAST_PORT:
        return
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        sender.settimeout(0)
        # Only to one who is connected the system tells that nobody listens there
        sender.connect((HERE, int(port)))
        sender.send(_NEWS)
        if sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ConnectionRefusedError


def forget(folder: int, name: str) -> None:
    """Take away the name of a listener that is gone."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def address(folder: int, name: str) -> str:
    """Return a short address: a socket's path may have 107 bytes only, and a store may lie deep."""
    return f"/proc/self/fd/{folder}/{name}"


_FLOOD = 1_000  # datagrams


class Ear:
    """A listener's socket.

    It is there before the first look, so nothing is missed between look and wait.

    What it hears is a reason to look and nothing more: whoever else can send to it learns nothing
    and changes nothing.
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
        os.close(
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        )
    except OSError:
        ear.close()
        raise
    return ear, name


def _silent(family: int) -> socket.socket:
    ear = socket.socket(family, socket.SOCK_DGRAM)
    ear.settimeout(0)
    return ear

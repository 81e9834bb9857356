"""Tells whoever listens that something was committed, by a datagram after the commit."""

import os
from contextlib import closing

BY_PORT = "udp-"  # what begins the name of an ear that listens on a port of this machine
HERE = "127.0.0.1"
_NEWS = b"\1"
_LAST_PORT = 65_535


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
        sender.connect((HERE, int(port)))  # only to one who is connected the system tells that nobody listens there
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

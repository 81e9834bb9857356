"""Machines with a network of their own each, where we may make one.

The cable of any of them can be pulled.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator


class Cable:
    """What joins a machine to this one.

    Its own end of the address, and how to start something at the other.
    """

    def __init__(self, name: str | None, host: str) -> None:
        self.host = host
        self._name = name

    @property
    def is_real(self) -> bool:
        """Whether there is a cable to pull."""
        return self._name is not None

    def before(self) -> tuple[str, ...]:
        """Return the words that have a command run at the other end."""
        # Not `ip netns exec`, which would hide the control groups as well.
        return ("nsenter", f"--net=/run/netns/{self._name}") if self._name else ()

    def pull(self) -> None:
        """Let nothing through any more; nobody is told."""
        self._set("down")

    def plug_in(self) -> None:
        """Let it through again."""
        self._set("up")

    def _set(self, state: str) -> None:
        if self._name:
            _ip("link", "set", self._name, state)


@contextlib.contextmanager
def cables(count: int) -> Iterator[list[Cable]]:
    """Join so many machines to this one.

    Without the privilege for it they share its network, and the caller may say so.
    """
    names = [f"adj{os.getpid() % 100_000}n{number}" for number in range(count)]
    try:
        try:
            made = [_joined(name, number) for number, name in enumerate(names)]
        except (OSError, subprocess.CalledProcessError):
            made = [Cable(None, "127.0.0.1") for _ in names]
        yield made
    finally:
        for name in names:
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                _ip("netns", "delete", name)


def _joined(name: str, number: int) -> Cable:
    if shutil.which("nsenter") is None:
        raise FileNotFoundError("nsenter")
    network = f"10.{200 + os.getpid() % 50}.{(os.getpid() // 50) % 250}"
    here, there = f"{network}.{4 * number + 1}", f"{network}.{4 * number + 2}"
    _ip("netns", "add", name)
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("addr", "add", f"{here}/30", "dev", name)
    _ip("link", "set", name, "up")
    for words in (
        ("addr", "add", f"{there}/30", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("link", "set", "lo", "up"),
    ):
        _ip("-n", name, *words)
    return Cable(name, here)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)

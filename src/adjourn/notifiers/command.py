"""Tells a command of the user's, by JSON on its stdin."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from adjourn.core.text.render import command_line
from adjourn.ports.notifier import (
    BadTable,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)


class _CommandKeys(msgspec.Struct, forbid_unknown_fields=True):
    command: tuple[str, ...]


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the notifier that a table describes."""
    argv = read_keys(values, _CommandKeys).command
    if not argv[0] or any("\0" in word for word in argv):
        raise BadTable("`command` must name a program, and no word of it may hold a NUL")
    return PreparedNotifier(
        notifier=CommandNotifier(argv, timeout=settings.timeout),
        name=os.path.basename(argv[0]),
        shown=command_line(argv),
    )


class CommandNotifier:
    """Runs a command once per document. It has taken it when it exits 0."""

    def __init__(self, argv: Sequence[str], *, timeout: float) -> None:
        self._argv = tuple(argv)
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, notice_id: str, body: bytes, *, at: int) -> None:
        """Run the command with the document on its stdin; what it prints goes to our stderr."""
        del notice_id, at  # both are in the document
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=2,
                cwd=os.path.expanduser("~"),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotDelivered(f"it could not be started: {error}") from error
        self._process = process
        try:
            process.communicate(body, timeout=self._timeout)
        except subprocess.TimeoutExpired:
            raise NotDelivered(f"it took longer than {self._timeout:g} s") from None
        finally:
            if process.poll() is None:
                _kill(process)
        self._process = None
        code = process.returncode
        if code:
            ending = f"ended with signal {-code}" if code < 0 else f"exited with {code}"
            raise NotDelivered(f"it {ending}")

    def hang_up(self) -> None:
        """Kill the command if it is at work."""
        if self._process and self._process.poll() is None:
            _kill(self._process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the command and what it started in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()

"""Tells a command of the user's, by JSON on its stdin."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from adjourn.ports.notifier import NotDelivered


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
        code = self._fed(process, body)
        self._process = None
        if code:
            raise NotDelivered(
                f"it ended with signal {-code}" if code < 0 else f"it exited with {code}"
            )

    def hang_up(self) -> None:
        """Kill the command if it is at work."""
        if self._process and self._process.poll() is None:
            _kill(self._process)

    def _fed(self, process: "subprocess.Popen[bytes]", body: bytes) -> int:
        try:
            process.communicate(body, timeout=self._timeout)
        except subprocess.TimeoutExpired:
            raise NotDelivered(f"it took longer than {self._timeout:g} s") from None
        finally:
            if process.poll() is None:
                _kill(process)
        return process.returncode


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the command and what it started in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()

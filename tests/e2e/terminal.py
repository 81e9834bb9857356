"""A real terminal with a person at it: a pty, what is typed, and what a screen shows in the end."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from typing import Self

import pyte

from tests.e2e.shell import ADJOURN, SECONDS, Shell

CTRL_C = b"\x03"
CTRL_BACKSLASH = b"\x1c"


class Terminal:
    """One adjourn command in the foreground of a terminal of its own."""

    def __init__(
        self,
        shell: Shell,
        *words: str,
        columns: int = 100,
        rows: int = 200,
        env: dict[str, str] | None = None,
        program: str = str(ADJOURN),
    ) -> None:
        self._program = program
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.code: int | None = None
        # A Ctrl+C waits until the command is there: Python, on its way there, would take it for its
        # own and lose it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            self._become(
                shell,
                words,
                {"TERM": "xterm-256color", "ADJOURN_PROMPT": "0"} | (env or {}),
                mask=before,
            )
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _become(
        self,
        shell: Shell,
        words: tuple[str, ...],
        env: dict[str, str],
        *,
        mask: set[int | signal.Signals],
    ) -> None:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(shell.place)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execve(self._program, [self._program, *words], shell.environment | env)
        finally:
            os._exit(127)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def listen(self, seconds: float) -> None:
        """Take what is printed for so long."""
        self._until(lambda: False, seconds)

    def sees(self, text: str) -> None:
        """Wait until something was printed."""
        assert self._until(lambda: text in self.raw.decode(errors="replace"), SECONDS), (
            f"{text!r} not in {self.raw!r}"
        )

    def sees_match(self, pattern: bytes, *, after: int = 0) -> None:
        """Wait until something like that was printed behind a place."""
        assert self._until(lambda: re.search(pattern, self.raw[after:]) is not None, SECONDS), (
            self.raw[after:]
        )

    def shows(self, text: str) -> None:
        """Wait until something is on the screen."""
        assert self._until(lambda: text in "\n".join(self.lines), SECONDS), (
            f"{text!r} not in {self.lines!r}"
        )

    def ends(self) -> int:
        """Wait until the command has left, and return its exit code."""
        assert self._until(lambda: self.code is not None, SECONDS), self.raw
        assert self.code is not None
        return self.code

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without the empty lines below."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    def _until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                return False
            self._step()
        return True

    def _step(self) -> None:
        ready, _, _ = select.select([self._fd], [], [], 0.05)
        piece = b""
        with contextlib.suppress(OSError):  # the other end is closed
            piece = os.read(self._fd, 65536) if ready else b""
        self.raw += piece
        self._stream.feed(piece)
        if ready and not piece and self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self) -> int:
        """Close the terminal, and return the exit code of what ran in it."""
        os.close(self._fd)
        self._fd = -1
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._fd >= 0:
            os.close(self._fd)
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)

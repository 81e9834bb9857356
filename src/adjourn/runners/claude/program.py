"""Claude Code as a process: its lines, its end, and how it is told to stop."""

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from adjourn.system.files import write_all

_PIECE = 1 << 18
_TAIL = 4_000
# No news for a person: the session then goes on with words of ours
NO_MARKER = "No deferred tool marker"


class Program:
    """A running Claude Code, watched through a selector.

    Its end is its own: a pipe may be held by what it started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: dict[str, str],
        words: str | None,
        selector: selectors.BaseSelector,
        hear: Callable[[bytes], None],
    ) -> None:
        self._hear = hear
        self._selector = selector
        self._rest = b""
        self.complaints = ""
        self.is_gone = False
        stdin = _file_with(words) if words is not None else os.open(os.devnull, os.O_RDONLY)
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The interrupt of our group must not reach it: it would blame the person
                start_new_session=True,
            )
        finally:
            os.close(stdin)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._watch()

    def _watch(self) -> None:
        out, err = self._process.stdout, self._process.stderr
        assert out is not None and err is not None  # noqa: S101, PT018 -- both were asked for
        self._out, self._err = out.fileno(), err.fileno()
        for stream, take in ((self._out, self._take_lines), (self._err, self._take_complaints)):
            os.set_blocking(stream, False)
            self._selector.register(stream, selectors.EVENT_READ, take)
        self._selector.register(self._pidfd, selectors.EVENT_READ, self._leave)

    @property
    def exit_code(self) -> int | None:
        """How it ended: its exit code, or the signal as a negative number."""
        return self._process.returncode

    def terminate(self) -> None:
        """Ask it to save its session and exit.

        SIGTERM keeps the session, SIGINT would tell the model that a person said no.
        """
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once; what it started is ended by the shim."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if not self.is_gone:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _take_lines(self) -> bool:
        piece = self._read(self._out)
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._hear(line)
        return bool(piece)

    def _take_complaints(self) -> bool:
        said = self._read(self._err).decode(errors="replace")
        self.complaints = (self.complaints + said)[-_TAIL:]
        if NO_MARKER not in said:
            sys.stderr.write(said)
            sys.stderr.flush()
        return bool(said)

    def _read(self, stream: int) -> bytes:
        try:
            piece = os.read(stream, _PIECE)
        except BlockingIOError:
            return b""
        if not piece:
            with suppress(KeyError):
                self._selector.unregister(stream)
        return piece

    def drain(self) -> None:
        """Take in what it has printed up to now."""
        while self._take_lines() or self._take_complaints():
            pass

    def _leave(self) -> None:
        self._process.wait()
        self.drain()
        if self._rest:
            self._hear(self._rest)
        self.is_gone = True
        for stream in (self._out, self._err, self._pidfd):
            with suppress(KeyError):
                self._selector.unregister(stream)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()
        os.close(self._pidfd)


def _file_with(words: str) -> int:
    """Return a descriptor to read the words from."""
    file = os.memfd_create("prompt", os.MFD_CLOEXEC)
    write_all(file, words.encode())
    os.lseek(file, 0, os.SEEK_SET)
    return file

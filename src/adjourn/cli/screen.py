"""What a person sees of a run while it works: its output, and on a terminal a line that tells the time."""

import os
import select
import stat
import time
from codecs import getincrementaldecoder

from adjourn.cli.session import Session
from adjourn.core.render import block
from adjourn.core.when import span
from adjourn.files import open_plain

_STDOUT, _STDERR = 1, 2
_CHUNK = 1 << 20
_ALWAYS_FITS = 4096  # bytes that a pipe takes without waiting once it polls as writable
_NEVER = 1 << 62
_DOING = ("running {}  (Ctrl+C pauses)", "stopping {}  (Ctrl+C again kills)", "killing {}")  # by how often it was told to stop


class Screen:
    """The terminal or the pipes of a run in the foreground."""

    def __init__(self, session: Session) -> None:
        self.is_wanted = not session.wants_json or session.verbose
        # In JSON mode stdout is the document's alone.
        self._streams = (
            [Stream("stderr", _STDERR)] if session.wants_json else [Stream("stdout", _STDOUT), Stream("stderr", _STDERR)]
        )
        self._ticks = os.isatty(_STDERR) and not session.wants_json and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._is_shown = False
        self._place: str | None = None

    def follow(self, place: str, told: int) -> None:
        """Hand on what the run has printed since the last look, as far as it is read: whoever is slow must not hold up a stop."""
        self._place = place
        if any(stream.has_more(place) for stream in self._streams):
            self._clear()
            for stream in self._streams:
                stream.hand_on(place, waits=False)
        if self._ticks and all(stream.is_at_line_start for stream in self._streams):
            self._tick(_DOING[min(told, len(_DOING) - 1)])

    def _tick(self, doing: str) -> None:
        elapsed = int((time.monotonic() - self._began) * 1000)
        self._put("\r\x1b[2K" + doing.format(span(elapsed)) + "\r")
        self._is_shown = True

    def close(self) -> None:
        """Take the line away, and hand on the rest."""
        self._clear()
        for stream in self._streams:
            if self._place and stream.has_more(self._place):
                stream.hand_on(self._place)

    def _clear(self) -> None:
        if self._is_shown:
            self._put("\r\x1b[2K")
            self._is_shown = False

    def _put(self, text: str) -> None:
        """Write to the terminal; one that is gone must not end the watch over the run."""
        try:
            os.write(_STDERR, text.encode())
        except OSError:
            self._ticks = False


class Stream:
    """One output file of a run, and the descriptor that it is copied to."""

    def __init__(self, name: str, fd: int) -> None:
        self._name = name
        self._fd = fd
        self._offset = 0
        self._decoder = getincrementaldecoder("utf-8")("surrogateescape") if os.isatty(fd) else None
        self._unsaid = b""
        self._ends_a_line = True
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    @property
    def is_at_line_start(self) -> bool:
        """Whether what was handed on ends with a whole line."""
        return self._ends_a_line and not self._unsaid

    def has_more(self, place: str) -> bool:
        """Say whether there is something new."""
        if self._unsaid:
            return True
        try:
            found = os.lstat(os.path.join(place, self._name))
        except FileNotFoundError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size > self._offset

    def hand_on(self, place: str, *, waits: bool = True) -> None:
        """Copy what is new: byte for byte, except to a terminal, where control characters are made visible.

        Unless it waits, it leaves for later what cannot be written at once.
        """
        fd = open_plain(os.path.join(place, self._name))
        if fd is None:
            return
        with open(fd, "rb") as file:
            file.seek(self._offset)
            while self._say(waits=waits) and (chunk := file.read(_CHUNK)):
                self._offset += len(chunk)
                self._ends_a_line = chunk.endswith(b"\n")
                self._unsaid = block(self._decoder.decode(chunk)).encode() if self._decoder else chunk

    def _say(self, *, waits: bool) -> bool:
        """Write what is to be written; say whether all of it is."""
        rest = memoryview(self._unsaid)
        try:
            while rest and (waits or self._room.poll(0)):
                rest = rest[os.write(self._fd, rest[:_ALWAYS_FITS]) :]
        except OSError:
            rest, self._offset = rest[:0], _NEVER  # whoever closed it does not want to hear
        self._unsaid = bytes(rest)
        return not rest and self._offset < _NEVER

"""What a person sees of a run while it works.

Its output, and on a terminal a line that tells the time.
"""

import os
import select
import stat
import time
from codecs import getincrementaldecoder
from collections.abc import Sequence

from adjourn.cli.terminal import columns_of, note_lost_output
from adjourn.core.text.render import block, fitting_head, width
from adjourn.core.text.when import span
from adjourn.system.files import open_plain
from adjourn.views.block import CUSTOMARY_COLUMNS

_STDOUT, _STDERR = 1, 2
_CHUNK = 1 << 20
_ALWAYS_FITS = 4096  # bytes that a pipe takes without waiting once it polls as writable
_NEVER = 1 << 62
_MARKS = {"stdout": "out", "stderr": "err"}
# By how often it was told to stop
_DOING = ("running {}  (Ctrl+C pauses)", "stopping {}  (Ctrl+C again kills)", "killing {}")


class Screen:
    """The terminal or the pipes of a run in the foreground."""

    def __init__(self, *, wants_json: bool, verbose: bool) -> None:
        self.is_wanted = not wants_json or verbose
        self._margin = Margin()
        self._streams = [Stream("stderr", _STDERR, self._margin)]
        if not wants_json:  # else stdout is the document's alone
            self._streams.insert(0, Stream("stdout", _STDOUT, self._margin))
        self._ticks = os.isatty(_STDERR) and not wants_json and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._is_shown = False
        self._place: str | None = None

    def follow(self, place: str, told: int) -> None:
        """Hand on what the run has printed since the last look, as far as it is read.

        A slow reader must not delay a stop.
        """
        self._place = place
        if any(stream.has_more(place) for stream in self._streams):
            self._clear()
            hand_on_all(self._streams, place, waits=False)
        if self._ticks and all(stream.is_at_line_start for stream in self._streams):
            self._tick(_DOING[min(told, len(_DOING) - 1)])

    def _tick(self, doing: str) -> None:
        elapsed = int((time.monotonic() - self._began) * 1000)
        self._put("\r\x1b[2K" + doing.format(span(elapsed)) + "\r")
        self._is_shown = True

    def close(self) -> None:
        """Take the line away, and hand on the rest."""
        self._clear()
        if self._place:
            hand_on_all(self._streams, self._place)
        if ending := self._margin.end():
            self._put(ending)

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


class Margin:
    """The left edge of a terminal: begins each row that a run prints with the name of its stream.

    Without it a run could print a line that looks like one of ours. Both streams write to one
    terminal, so they share the place of its cursor.
    """

    def __init__(self) -> None:
        self._column = 0
        self._source = ""

    def marked(self, text: str, source: str, *, columns: int) -> str:
        """Return rendered text with a mark before each row; the terminal has to break none."""
        mark = f"{source} │ "
        pieces = [self.end()] if source != self._source else []
        self._source = source
        for number, line in enumerate(text.split("\n")):
            if number:
                pieces.append("\n")
                self._column = 0
            rest = line
            while rest:
                if not self._column:
                    pieces.append(mark)
                    self._column = len(mark)
                row = fitting_head(rest, max(columns, len(mark) + 2) - self._column)
                pieces.append(row)
                self._column += width(row)
                rest = rest[len(row) :]
                pieces.append(self.end() if rest else "")
        return "".join(pieces)

    def end(self) -> str:
        """Return what brings the cursor to the beginning of a row."""
        ending = "\n" if self._column else ""
        self._column = 0
        return ending


def hand_on_all(streams: Sequence["Stream"], place: str, *, waits: bool = True) -> None:
    """Copy what is new of each stream.

    One that could not be written whole goes first, and no other cuts in.
    """
    for stream in sorted(streams, key=lambda each: not each.is_held_up):
        if stream.has_more(place) and not stream.hand_on(place, waits=waits) and stream.is_terminal:
            return


class Stream:
    """One output file of a run, and the descriptor that it is copied to."""

    def __init__(self, name: str, fd: int, margin: Margin) -> None:
        self.is_terminal = os.isatty(fd)
        self._margin = margin
        self._name = name
        self._fd = fd
        self._offset = 0
        self._decoder = (
            getincrementaldecoder("utf-8")("surrogateescape") if self.is_terminal else None
        )
        self._unsaid = b""
        self._ends_a_line = True
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    @property
    def is_held_up(self) -> bool:
        """Whether something is read and not written yet."""
        return bool(self._unsaid)

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

    def hand_on(self, place: str, *, waits: bool = True) -> bool:
        """Copy what is new: byte for byte, but for a terminal with control characters visible.

        Unless it waits, it leaves for later what cannot be written at once; return whether all was
        written.
        """
        fd = open_plain(os.path.join(place, self._name))
        if fd is None:
            return not self._unsaid
        with open(fd, "rb") as file:
            file.seek(self._offset)
            while self._say(waits=waits) and (chunk := file.read(_CHUNK)):
                self._offset += len(chunk)
                self._ends_a_line = chunk.endswith(b"\n")
                self._unsaid = self._for_terminal(chunk) if self._decoder else chunk
        return not self._unsaid

    def _for_terminal(self, chunk: bytes) -> bytes:
        assert self._decoder  # noqa: S101 -- the caller looked; the type does not say
        columns = columns_of(self._fd) or CUSTOMARY_COLUMNS
        mark = _MARKS[self._name]
        return self._margin.marked(
            block(self._decoder.decode(chunk)), mark, columns=columns
        ).encode()

    def _say(self, *, waits: bool) -> bool:
        """Write what is to be written; say whether all of it is."""
        rest = memoryview(self._unsaid)
        try:
            while rest and (waits or self._room.poll(0)):
                rest = rest[os.write(self._fd, rest[:_ALWAYS_FITS]) :]
        except OSError as error:
            rest, self._offset = rest[:0], _NEVER
            if self._fd == _STDOUT:
                note_lost_output(error)
        self._unsaid = bytes(rest)
        return not rest and self._offset < _NEVER

"""The three standard streams.

Always there, whatever the caller closed, and able to carry every character.
"""

import os
import select
import sys
import termios
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import TextIO

import msgspec

from adjourn.core.text.render import Cut, clipped, wrap
from adjourn.system.poll import Poll
from adjourn.views.block import CUSTOMARY_COLUMNS, Block, Line, change_text, lay_out
from adjourn.views.block import wrap as wrap_blocks

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_OTHER_ROWS = 14  # that an ask takes beside what is cut: why, where, the agent's words, what to do
_LEAST_ROWS = 8
_CUSTOMARY_ROWS = 24
# The one place that turns a role into a colour; all other roles are plain here
_COLOURS = {
    "strong": "1",
    "danger": "31",
    "succeeded": "32",
    "added": "32",
    "removed": "31",
    "waiting": "33",
    "running": "34",
    "ready": "36",
    "muted": "90",
}


def make_ready() -> None:
    """Open a closed stream on /dev/null, before its number is given to the store or to a socket."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= _STDERR:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
    for number in (_STDOUT, _STDERR):
        if not os.get_blocking(number):
            # Node, say, left it otherwise: what does not fit would be lost
            os.set_blocking(number, True)
    sys.stdout = _usable(sys.stdout, _STDOUT)
    sys.stderr = _usable(sys.stderr, _STDERR)


def _usable(stream: TextIO | None, fd: int) -> TextIO:
    """Return a stream that spells out what its encoding lacks.

    Python has none for what was closed when it started.
    """
    if stream is None:
        return open(fd, "w", encoding="utf-8", closefd=False)
    _set_up(stream, errors="backslashreplace")
    return stream


def columns_of(stream: TextIO | int) -> int | None:
    """Return how wide the terminal of a stream or descriptor is, or None if it is no terminal."""
    try:
        fd = stream if isinstance(stream, int) else stream.fileno()
        # One that was never told its size says 0
        return os.get_terminal_size(fd).columns or CUSTOMARY_COLUMNS
    except (OSError, ValueError):
        return None


def rows_of_stdout() -> int:
    """Return how high the terminal is that stdout is, or one that is not known."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _CUSTOMARY_ROWS
    except (OSError, ValueError):
        return _CUSTOMARY_ROWS


def fitted(cut: Cut) -> Cut:
    """Return how much of a value is shown, with as many lines as the terminal has room for."""
    return msgspec.structs.replace(cut, lines=max(rows_of_stdout() - _OTHER_ROWS, _LEAST_ROWS))


def printed(blocks: Iterable[Block], stream: TextIO) -> str:
    """Return blocks as this stream takes them.

    For a terminal, in rows that fit, so that each begins with words of ours, and with colours on
    stdout unless somebody said otherwise.
    """
    columns = columns_of(stream)
    rows = lay_out(blocks, columns)
    if columns is not None:
        rows = wrap_blocks(change_text(rows, lambda text: _spelled(text, stream)), columns)
    can_colour = stream is sys.stdout and (stream.isatty() or bool(os.environ.get("FORCE_COLOR")))
    has_colour = can_colour and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return "\n".join(_coloured(row) if has_colour else row.text for row in rows)


def _spelled(text: str, stream: TextIO) -> str:
    if text.isascii():
        return text
    return text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)


def _coloured(row: Line) -> str:
    return "".join(
        f"\x1b[{_COLOURS[span.role]}m{span.text}\x1b[0m" if span.role in _COLOURS else span.text
        for span in row.spans
    )


# Why something that was to be on stdout is not there
_lost_output: list[OSError] = []


def print_exactly(text: str) -> None:
    """Print to stdout: not a character is added. What cannot be written is noted."""
    try:
        sys.stdout.write(text + "\n")
    except (OSError, ValueError) as error:
        note_lost_output(error)
        _silence_stdout()


def note_lost_output(error: OSError | ValueError) -> None:
    """Note that something could not be written to stdout.

    The reader closed it on purpose, so that is no error; the exit code still holds.
    """
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        _lost_output.append(error)


def lost_output() -> OSError | None:
    """Return why something that was to be on stdout is not there, if so."""
    return _lost_output[0] if _lost_output else None


def print_warning(text: str) -> None:
    """Print to stderr, if it is still there."""
    with suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")


def flush() -> None:
    """Hand out what was printed so far, before somebody else writes to the same place."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        note_lost_output(error)
        _silence_stdout()


def _silence_stdout() -> None:
    """Keep the interpreter from complaining about a closed stdout when it ends."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- it lives until the process ends


def speak_utf8() -> None:
    """Print UTF-8 from here on, whatever the locale: JSON is."""
    _set_up(sys.stdout, encoding="utf-8")


def _set_up(stream: object, **settings: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(**settings)


_CLEAR = "\x1b[K"


class StatusLine:
    """One line below everything else that is said."""

    def __init__(self, *, is_wanted: bool) -> None:
        self.is_there = is_wanted and os.isatty(_STDERR) and os.environ.get("TERM") != "dumb"
        self._text = ""

    def show(self, text: str) -> None:
        """Put the text on the line, unless it stands there."""
        if self.is_there and text != self._text:
            self._text = text
            self._put(self._drawn())

    def say(self, line: str) -> None:
        """Print above the line. It is one write: nothing flickers."""
        rows = wrap(line, columns=self._columns()).replace("\n", f"{_CLEAR}\n")
        self._put(f"\r{rows}{_CLEAR}\n{self._drawn()}")

    def close(self) -> None:
        """Take the line away."""
        if self._text:
            self._text = ""
            self._put(f"\r{_CLEAR}")

    def _drawn(self) -> str:
        text = clipped(self._text, columns=self._columns())
        return f"\r{text}{_CLEAR}\r" if text else ""

    def _columns(self) -> int:
        """Return how much fits.

        The last column stays free, for some terminals begin a new line behind it.
        """
        try:
            return max(os.get_terminal_size(_STDERR).columns - 1, 1)
        except OSError:
            return 79

    def _put(self, text: str) -> None:
        try:
            os.write(_STDERR, text.encode(errors="backslashreplace"))
        except OSError:
            self.is_there = False  # a terminal that is gone must not end the work


_QUIET_MS = 250  # without a key, before a question takes one
_PASTE_MS = 50  # what follows a line within this time was not typed


def wait_for_silence(*, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Discard what was typed so far, and return when no key was pressed for 250 ms.

    Call it after the thing to decide is on the screen and before the question is. A key that is
    held down, or a paste that is still arriving, puts the question off.
    """
    with key_by_key(), suppress(termios.error):
        termios.tcflush(_STDIN, termios.TCIFLUSH)
        while not is_stopped() and _has_input(_QUIET_MS):
            termios.tcflush(_STDIN, termios.TCIFLUSH)


def is_pasted() -> bool:
    """Return whether more input follows the line that was just read, as in a paste.

    It is discarded.
    """
    with key_by_key():
        return _has_input(_PASTE_MS)


def pressed_key(poll: Poll, is_over: Callable[[], bool]) -> str | None:
    """Wait for one key, and return it: an empty text if several came at once or it is over.

    None means that the terminal is gone.
    """
    with key_by_key():
        poll.add(_STDIN)
        while not is_over():
            if _STDIN not in poll.wait(60.0):
                continue
            try:
                typed = os.read(_STDIN, 4096)
            except OSError:
                return None
            if not typed:
                return None
            is_single = len(typed) == 1 and not _has_input(_PASTE_MS)
            return typed.decode(errors="replace") if is_single else ""
    return ""


def _has_input(within_ms: int) -> bool:
    """Wait for a key. A terminal that is gone has none."""
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    found = poll.poll(within_ms)
    return bool(found) and not found[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL)


@contextmanager
def key_by_key() -> Generator[None, None, None]:
    """Let single keys be noticed, not only whole lines.

    Afterwards all that was typed is discarded.
    """
    try:
        before = termios.tcgetattr(_STDIN)
    except termios.error:  # no terminal, or one that was closed
        yield
        return
    changed = before.copy()
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    try:
        with suppress(termios.error):
            termios.tcsetattr(_STDIN, termios.TCSANOW, changed)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(_STDIN, termios.TCSAFLUSH, before)

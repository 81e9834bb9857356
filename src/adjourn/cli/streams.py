"""The three standard streams: always there, whatever the caller closed, and able to carry every character."""

import os
import sys
from typing import TextIO

CUSTOMARY_COLUMNS = 80
_STDOUT, _STDERR = 1, 2


def make_ready() -> None:
    """Open on nothing whichever of the three is closed, before its number is given to the store or to a socket."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= _STDERR:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
    for speaking in (_STDOUT, _STDERR):
        if not os.get_blocking(speaking):
            os.set_blocking(speaking, True)  # Node, say, left it otherwise: what does not fit would be lost
    sys.stdout = _speaking(sys.stdout, _STDOUT)
    sys.stderr = _speaking(sys.stderr, _STDERR)


def _speaking(stream: TextIO | None, fd: int) -> TextIO:
    """Return a stream that spells out what its encoding lacks; Python has none for what was closed when it started."""
    if stream is None:
        return open(fd, "w", encoding="utf-8", closefd=False)
    _set_up(stream, errors="backslashreplace")
    return stream


def columns_of(stream: TextIO | int) -> int | None:
    """Return how wide the terminal is that a stream or a descriptor writes to, or None if it is no terminal."""
    try:
        fd = stream if isinstance(stream, int) else stream.fileno()
        return os.get_terminal_size(fd).columns or CUSTOMARY_COLUMNS  # one that was never told its size says 0
    except (OSError, ValueError):
        return None


def speak_utf8() -> None:
    """Print UTF-8 from here on, whatever the locale: JSON is."""
    _set_up(sys.stdout, encoding="utf-8")


def _set_up(stream: object, **settings: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(**settings)

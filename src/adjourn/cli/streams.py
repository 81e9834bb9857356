"""The three standard streams: always there, whatever the caller closed, and able to carry every character."""

import os
import sys
from typing import TextIO

_LAST = 2  # stderr


def make_ready() -> None:
    """Open on nothing whichever of the three is closed, before its number is given to the store or to a socket."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= _LAST:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
    sys.stdout = _speaking(sys.stdout, 1)
    sys.stderr = _speaking(sys.stderr, _LAST)


def _speaking(stream: TextIO | None, fd: int) -> TextIO:
    """Return a stream that spells out what its encoding lacks; Python has none for what was closed when it started."""
    if stream is None:
        return open(fd, "w", encoding="utf-8", closefd=False)
    _set_up(stream, errors="backslashreplace")
    return stream


def speak_utf8() -> None:
    """Print UTF-8 from here on, whatever the locale: JSON is."""
    _set_up(sys.stdout, encoding="utf-8")


def _set_up(stream: object, **settings: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(**settings)

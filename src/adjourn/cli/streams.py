"""The three standard streams: always there, whatever the caller closed, and able to carry every character."""

import io
import os
import sys

_LAST = 2  # stderr


def make_ready() -> None:
    """Open on nothing whichever of the three is closed, before its number is given to the store or to a socket."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= _LAST:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
    sys.stdout = _speaking(sys.stdout, 1)
    sys.stderr = _speaking(sys.stderr, _LAST)


def _speaking(stream: object, fd: int) -> io.TextIOWrapper:
    """Return a stream that spells out what its encoding lacks; Python has none for what was closed when it started."""
    if not isinstance(stream, io.TextIOWrapper):
        return open(fd, "w", encoding="utf-8", closefd=False)
    stream.reconfigure(errors="backslashreplace")
    return stream


def speak_utf8() -> None:
    """Print UTF-8 from here on, whatever the locale: JSON is."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")

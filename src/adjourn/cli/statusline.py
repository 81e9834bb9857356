"""The last line of a terminal, rewritten when it changes; where there is no terminal there is no such line."""

import os

from adjourn.core.render import clipped, wrap

_STDERR = 2
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

    def remove(self) -> None:
        """Take the line away."""
        if self._text:
            self._text = ""
            self._put(f"\r{_CLEAR}")

    def _drawn(self) -> str:
        text = clipped(self._text, columns=self._columns())
        return f"\r{text}{_CLEAR}\r" if text else ""

    def _columns(self) -> int:
        """Return how much fits: the last column stays free, for some terminals begin a new line behind it."""
        try:
            return max(os.get_terminal_size(_STDERR).columns - 1, 1)
        except OSError:
            return 79

    def _put(self, text: str) -> None:
        try:
            os.write(_STDERR, text.encode(errors="backslashreplace"))
        except OSError:
            self.is_there = False  # a terminal that is gone must not end the work

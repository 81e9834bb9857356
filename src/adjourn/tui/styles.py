"""Turns lines of views into strips of a terminal, and keeps control characters away from it."""

import unicodedata

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from adjourn.views.block import Line, Role

STYLES: dict[Role, Style] = {
    "strong": Style(bold=True),
    "danger": Style(color="red", bold=True),
    "succeeded": Style(color="green"),
    "added": Style(color="green"),
    "removed": Style(color="red"),
    "waiting": Style(color="yellow"),
    "running": Style(color="blue"),
    "ready": Style(color="cyan"),
    "muted": Style(dim=True),
    "link": Style(underline=True),
}
_PLAIN = Style()
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Control characters, and those that change the order or the look of their neighbours unseen
_HARMFUL = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})


def strip_of(line: Line, style: Style = _PLAIN) -> Strip:
    """Return a line as the terminal gets it, each span in the colour of its role."""
    return Strip(
        [Segment(span.text, style + STYLES.get(span.role, _PLAIN)) for span in line.spans],
        cell_len(line.text),
    )


def harmless_text(text: str) -> str:
    """Return a text without anything that a terminal would obey."""
    if text.isascii() and text.isprintable():
        return text
    kept: list[str] = []
    for each in text:
        if unicodedata.category(each) not in _HARMFUL:
            kept.append(each)
        elif cell_len(each):  # a row keeps its width
            kept.append(_REPLACEMENT)
    return "".join(kept)


class HarmlessText(LineFilter):
    """The last lock: views render every text of others already, and widgets may have more."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Replace what a terminal would obey in each segment."""
        del background
        return [
            segment
            if segment.control
            else Segment(harmless_text(segment.text), segment.style, segment.control)
            for segment in segments
        ]

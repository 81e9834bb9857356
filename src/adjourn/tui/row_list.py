"""A list of which only the rows on the screen are read and drawn, however long it is."""

from collections.abc import Callable, Sequence

from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from adjourn.tui.styles import strip_of
from adjourn.views.block import Line, line

# Returns the row of a key for so many columns; None if it has to be read first
DrawRow = Callable[[str, int], Line | None]
_UNREAD = line("…")


class RowList(ScrollView, can_focus=True):
    """Rows by their keys, and a cursor on one of them."""

    DEFAULT_CSS = """
    RowList { scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; }
    """

    class Selected(Message):
        """The cursor is on another row."""

    class Opened(Message):
        """A row was opened with a second click."""

    class Missing(Message):
        """Rows on the screen have not been read."""

        def __init__(self, keys: Sequence[str]) -> None:
            self.keys = keys
            super().__init__()

    def __init__(self, draw: DrawRow, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._draw = draw
        self._keys: Sequence[str] = ()
        self._cursor = 0
        self._missing: list[str] = []
        self.empty = line()  # what stands where there is no row

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all rows."""
        return self._keys

    @property
    def cursor(self) -> int:
        """The number of the row that is selected."""
        return self._cursor

    @property
    def selected(self) -> str | None:
        """The key of the row that is selected; None if there is no row."""
        return self._keys[self._cursor] if self._keys else None

    def set_keys(self, keys: Sequence[str]) -> None:
        """Show other rows. The cursor stays on its key, or where that key was."""
        before = self.selected
        self._keys = keys
        if before is not None and not (self._cursor < len(keys) and keys[self._cursor] == before):
            try:
                self._cursor = keys.index(before)
            except ValueError:
                self._cursor = max(0, min(self._cursor, len(keys) - 1))
        self.virtual_size = Size(self.scrollable_content_region.width, len(keys))
        self._follow_cursor()
        self.refresh()
        if self.selected != before:
            self.post_message(self.Selected())

    def move_to(self, number: int) -> None:
        """Put the cursor on a row, or on the nearest one."""
        number = max(0, min(number, len(self._keys) - 1))
        if number == self._cursor:
            return
        self._cursor = number
        self._follow_cursor()
        self.refresh()
        self.post_message(self.Selected())

    def _follow_cursor(self) -> None:
        height, top = max(self.scrollable_content_region.height, 1), self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=True)

    def on_click(self, event: Click) -> None:
        """Select the row under the pointer; a second click opens it."""
        number = event.y + self.scroll_offset.y
        if 0 <= number < len(self._keys):
            self.move_to(number)
            if event.chain > 1:
                self.post_message(self.Opened())

    def render_line(self, y: int) -> Strip:
        """Draw one row; what has to be read first is asked for once."""
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if not self._keys and y == 0:
            return strip_of(self.empty, self.rich_style).adjust_cell_length(width, self.rich_style)
        if not 0 <= number < len(self._keys):
            return Strip.blank(width, self.rich_style)
        row = self._draw(self._keys[number], width)
        if row is None:
            row = _UNREAD
            if not self._missing:
                self.call_later(self._ask_for_missing)
            self._missing.append(self._keys[number])
        style = self.rich_style + Style(reverse=True) if number == self._cursor else self.rich_style
        return strip_of(row, style).adjust_cell_length(width, style)

    def _ask_for_missing(self) -> None:
        missing, self._missing = self._missing, []
        self.post_message(self.Missing(missing))

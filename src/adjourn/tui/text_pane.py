"""A pane that shows the blocks of a view, and knows which of its rows were on the screen."""

import time
from collections.abc import Sequence

from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from adjourn.tui.styles import strip_of
from adjourn.views.block import Block, Line, wrap

_NARROWEST = 8


class TextPane(ScrollView, can_focus=True):
    """Rows of text. Only the rows on the screen are drawn, so a long text costs no more."""

    DEFAULT_CSS = """
    TextPane { scrollbar-gutter: stable; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._blocks: Sequence[Block] = ()
        self._rows: list[Line] = []
        self._columns = 0
        self._unseen: set[int] = set()
        self._shown_at: float | None = None

    @property
    def shown_at(self) -> float | None:
        """When the last of its rows came on the screen; None while some never did."""
        return self._shown_at if self._rows and not self._unseen and self.is_on_screen else None

    @property
    def rows(self) -> Sequence[Line]:
        """All rows, on the screen or not."""
        return self._rows

    @property
    def is_on_screen(self) -> bool:
        """Whether nothing covers it."""
        return self.is_attached and self.screen.is_current and self.region.height > 0

    def show(
        self, blocks: Sequence[Block], *, keeps_place: bool = False, at_end: bool = False
    ) -> None:
        """Show other blocks, from their beginning; or from where the pane is, or at their end."""
        self._blocks = blocks
        before = self._rows
        self._lay_out()
        if keeps_place and self._rows == before:
            return
        if at_end:
            self.scroll_end(animate=False)
        elif not keeps_place:
            self.scroll_to(y=0, animate=False)
        self.refresh()

    def _lay_out(self) -> None:
        self._columns = max(self.scrollable_content_region.width, _NARROWEST)
        rows = wrap(self._blocks, self._columns)
        if rows == self._rows:
            return
        self._rows = rows
        self._unseen = set(range(len(rows)))
        self._shown_at = None
        self.virtual_size = Size(self._columns, len(rows))

    def on_resize(self, event: Resize) -> None:
        """Break the lines again where the width has changed."""
        del event
        if self._columns != max(self.scrollable_content_region.width, _NARROWEST):
            self._lay_out()
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row, and remember that it was on the screen."""
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if not 0 <= number < len(self._rows):
            return Strip.blank(width, self.rich_style)
        if number in self._unseen and self.is_on_screen:
            self._unseen.discard(number)
            if not self._unseen:
                self._shown_at = time.monotonic()
        return strip_of(self._rows[number], self.rich_style).adjust_cell_length(
            width, self.rich_style
        )

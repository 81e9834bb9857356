"""What a TUI asks before it acts: a line of text, or a yes to something that was shown whole."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from adjourn.tui.arming import ALONE, SHOWN, Arming
from adjourn.tui.styles import strip_of
from adjourn.tui.text_pane import TextPane
from adjourn.views.block import Block, Line, Span, line

_CSS = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > Vertical {{
    width: 90%; height: auto; max-height: 90%; border: round $primary; padding: 0 1;
}}
{name} TextPane {{ height: auto; max-height: 100%; }}
"""


class TextRow(Widget):
    """One row of text. No markup: what is in it is what is shown."""

    DEFAULT_CSS = "TextRow { height: 1; }"

    def __init__(self, row: Line = line(), *, id: str | None = None) -> None:  # noqa: A002, B008 -- Textual's name; a frozen value
        super().__init__(id=id)
        self.row = row

    def show(self, *parts: str | Span) -> None:
        """Show another text."""
        self.row = line(*parts)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the text, cut at the right."""
        del y
        style = self.rich_style
        return strip_of(self.row, style).adjust_cell_length(self.size.width, style)


class TextScreen(ModalScreen[bool]):
    """Shows a text until it is closed. With a question, `y` says yes to all of what was shown."""

    DEFAULT_CSS = (
        _CSS.format(name="TextScreen")
        + """
    TextScreen > Vertical { height: 90%; }
    TextScreen TextPane { height: 1fr; }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "close", "close"),
        Binding("y", "agree", "yes"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("end,G", "end", "end"),
        Binding("home,g", "home", "home"),
    ]

    def __init__(self, blocks: Sequence[Block], *, arming: Arming, question: str = "") -> None:
        super().__init__()
        self._blocks = blocks
        self._arming = arming
        self._question = question
        self._pane = TextPane()
        self._hint = TextRow()

    def compose(self) -> ComposeResult:
        """Put the text above a line that says what the keys do."""
        with Vertical():
            yield self._pane
            yield self._hint

    def on_mount(self) -> None:
        """Show the text once its width is known."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        self._pane.show(self._blocks)
        keys = "y yes  Esc no  PgDn more" if self._question else "Esc close  PgDn more"
        self._hint.show(Span(f"{self._question}  " if self._question else ""), Span(keys, "strong"))

    def action_agree(self) -> None:
        """Say yes, if all was on the screen and the key came alone."""
        if not self._question:
            return
        why = self._arming.why_not(time.monotonic(), shown_at=self._pane.shown_at)
        if why:
            self._hint.show(why)
            return
        count = self._arming.count

        def agree() -> None:
            if self._arming.count == count and self.is_current:
                self.dismiss(result=True)
            else:
                self._hint.show("Several keys came at once, so none of them counts.")

        self.set_timer(ALONE, agree)

    def action_close(self) -> None:
        """Close it: nothing happens."""
        self.dismiss(result=False)

    def action_scroll(self, rows: int) -> None:
        """Scroll by rows."""
        self._pane.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        self._pane.scroll_relative(y=pages * max(self._pane.size.height - 1, 1), animate=False)

    def action_end(self) -> None:
        """Go to the end."""
        self._pane.scroll_end(animate=False)

    def action_home(self) -> None:
        """Go to the beginning."""
        self._pane.scroll_home(animate=False)


class LineScreen(ModalScreen[str | None]):
    """Asks for a line of text. Enter takes it, Escape leaves everything as it is."""

    DEFAULT_CSS = _CSS.format(name="LineScreen") + "LineScreen Input { height: 3; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "close")]

    def __init__(
        self,
        blocks: Sequence[Block],
        *,
        value: str = "",
        check: Callable[[str], str | None] | None = None,
    ) -> None:
        super().__init__()
        self._blocks = blocks
        self._input = Input(value=value, select_on_focus=False)
        self._input.cursor_blink = False
        self._check = check
        self._pane = TextPane()
        self._hint = TextRow()
        self.shown_at = float("inf")  # when it took keys for the first time

    def compose(self) -> ComposeResult:
        """Put what is asked above the line."""
        with Vertical():
            yield self._pane
            yield self._input
            yield self._hint

    def on_mount(self) -> None:
        """Show what is asked once the width is known, and take keys from then on."""
        self._hint.show(Span("Enter takes it  Esc leaves it", "strong"))
        self._input.focus()
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        self._pane.show(self._blocks)
        self._pane.styles.height = max(1, min(len(self._pane.rows), self.size.height - 8))
        self.shown_at = time.monotonic()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line, unless it was typed before anybody could read what it is for."""
        event.stop()
        if time.monotonic() - self.shown_at < SHOWN:
            self._hint.show("The keys came before the question: press Enter again.")
            return
        why = self._check(event.value) if self._check else None
        if why:
            self._hint.show(Span(why, "danger"))
            return
        self.dismiss(event.value)

    def action_close(self) -> None:
        """Leave everything as it is."""
        self.dismiss(None)

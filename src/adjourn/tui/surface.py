"""What the actions of a TUI need of it: the page that is shown, dialogs, and the stores."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import AdjournError
from adjourn.tui.arming import Arming
from adjourn.tui.listings import RowKey
from adjourn.tui.pages import Page
from adjourn.tui.text_pane import TextPane
from adjourn.views.block import Block, CommandWriter, Span

T = TypeVar("T")
READ_ONLY = "Inside a run you can only look: a person decides from outside."
TOO_FAST = "Several keys came at once, so none of them counts."


class Surface(Protocol):
    """The TUI, as its actions see it."""

    arming: Arming
    pane: TextPane
    page: Page | None
    page_key: RowKey | None
    face: str
    decided_here: set[str]
    command_log: list[str]

    @property
    def is_read_only(self) -> bool:
        """Whether nothing may be changed from here."""
        ...

    @property
    def marked_keys(self) -> list[RowKey]:
        """The asks that are marked."""
        ...

    def unmark_all(self) -> None:
        """Mark nothing any more."""
        ...

    def say(self, *parts: str | Span) -> None:
        """Show a sentence above the keys, until the next one."""
        ...

    def say_error(self, error: AdjournError) -> None:
        """Show what went wrong, and what helps."""
        ...

    def note(self, at: int, words: Sequence[str], sentence: str = "") -> None:
        """Keep the command that does the same, and show it behind a sentence."""
        ...

    def root(self, at: int) -> str:
        """Return where a store is."""
        ...

    def commands(self, at: int) -> CommandWriter:
        """Return what writes commands for a store."""
        ...

    def what(self, key: RowKey) -> str:
        """Return what the row of a key says."""
        ...

    def principal(self, controller: Controller) -> Principal:
        """Return who is at the keyboard, as a store says."""
        ...

    async def done(self, at: int, work: Callable[[Controller], T]) -> T | None:
        """Do something in a store; where it is refused, show why, and return None."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something while the TUI goes on."""
        ...

    async def ask_line(
        self,
        blocks: Sequence[Block],
        *,
        value: str = "",
        check: Callable[[str], str | None] | None = None,
    ) -> str | None:
        """Ask for a line of text; None if the person left it."""
        ...

    async def confirm(self, blocks: Sequence[Block], question: str) -> bool:
        """Show something whole, and return whether the person said yes to it."""
        ...

    def run_editor(self, edit: Callable[[], T]) -> T:
        """Leave the terminal to an editor for as long as it runs."""
        ...

    def show_key(self, key: RowKey, *, face: str = "") -> None:
        """Show something in the pane that need not be selected, or another face of it."""
        ...

    def quit(self) -> None:
        """Leave. What runs goes on."""
        ...

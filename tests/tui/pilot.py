"""A person at a TUI in this process: presses keys, and waits for what they see."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from adjourn.tui.app import TuiApp
from adjourn.tui.arming import QUIET, SHOWN
from adjourn.tui.dialogs import LineScreen
from adjourn.tui.options import TuiOptions
from adjourn.tui.row_list import RowList
from adjourn.tui.text_pane import TextPane
from adjourn.views.block import Commands
from tests.e2e.shell import Shell

SECONDS = 40


class Person:
    """One TUI and whoever sits at it."""

    def __init__(self, app: TuiApp, pilot: "Pilot[None]") -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, each when the TUI takes a key that decides."""
        for key in keys:
            await self.look()
            await self.pilot.press(key)

    async def look(self) -> None:
        """Wait until all that is on the screen was there long enough, and no key came lately."""
        began = time.monotonic()

        def is_ready() -> bool:
            now, screen = time.monotonic(), self.app.screen
            shown = screen.shown_at if isinstance(screen, LineScreen) else self.pane.shown_at
            return now - began > QUIET + 0.02 and (shown is None or now - shown > SHOWN + 0.02)

        await self.until(is_ready, "nothing is ready")

    async def write(self, text: str) -> None:
        """Type a line in a dialog, and end it."""
        await self.until(
            lambda: isinstance(self.app.screen, LineScreen) and bool(self.app.screen.query(Input)),
            "no dialog",
        )
        self.app.screen.query_one(Input).insert_text_at_cursor(text)
        await self.look()
        await self.pilot.press("enter")

    async def until(self, is_so: Callable[[], bool], what: str = "") -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"{what}\n{self.screen()}"
            await self.pilot.pause(0.01)

    async def sees(self, text: str) -> None:
        """Wait until something is on the screen."""
        await self.until(lambda: text in self.screen(), f"{text!r} is not on the screen")

    def screen(self) -> str:
        """Return what the screen shows, row by row."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips).rstrip()

    async def see_whole(self) -> None:
        """Wait until the pane shows something, and all of its rows were on the screen."""
        await self.until(lambda: self.app.page is not None, "no page")
        await self.see_all()

    async def see_all(self) -> None:
        """Scroll a dialog until all of its rows were on the screen."""
        await self.until(lambda: bool(self.pane.rows), "no text")
        while self.pane.shown_at is None:
            await self.pilot.press("pagedown")
            await self.pilot.pause(0.02)

    async def shows_ask(self, ask_id: str) -> None:
        """Wait until the pane shows an ask."""

        def is_shown() -> bool:
            page = self.app.page
            return page is not None and page.ask is not None and page.ask.id == ask_id

        await self.until(is_shown, f"{ask_id} is not shown")

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all rows."""
        return self.app.query_one(RowList).keys

    @property
    def pane(self) -> TextPane:
        """The text of the screen that is on top."""
        return self.app.screen.query(TextPane).first()


@asynccontextmanager
async def sitting_at(
    shell: Shell,
    *,
    size: tuple[int, int] = (120, 40),
    roots: Sequence[str] | None = None,
    options: TuiOptions | None = None,
) -> AsyncIterator[Person]:
    """Open a TUI on the store of a shell."""
    app = TuiApp(
        roots or [str(shell.store)],
        commands_for=lambda root: Commands("adjourn", None if root == str(shell.store) else root),
        options=options or TuiOptions(),
    )
    async with app.run_test(size=size) as pilot:
        yield Person(app, pilot)


def at_tui(
    shell: Shell, act: Callable[[Person], Coroutine[Any, Any, None]], **settings: Any
) -> None:
    """Have a person act at a TUI, and leave nothing behind."""

    async def run() -> None:
        async with sitting_at(shell, **settings) as person:
            await act(person)

    asyncio.run(run())


def approvals(shell: Shell, count: int, *, first: int = 0) -> list[dict[str, Any]]:
    """Return asks for approvals of commands that are told apart by their last word."""
    return [
        shell.json("run", "--pause-on-approval", "--", "echo", f"number-{at}", expect=10)["asks"][0]
        for at in range(first, first + count)
    ]

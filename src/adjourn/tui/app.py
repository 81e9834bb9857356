"""The TUI: a list at the left, the whole of what is selected at the right, and keys that act.

Every action is a call of the controller in the thread of its store. Nothing polls: the hub tells
what happened. Nothing is decided that was not on the screen, whole.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
from textual import events
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import AdjournError, NotFound, NothingRecorded
from adjourn.core.task import Task
from adjourn.core.text.render import prose, visible
from adjourn.hub import Hub, News
from adjourn.process.ancestry import enclosing_run
from adjourn.system.machine import now as this_moment
from adjourn.tui.arming import Arming
from adjourn.tui.dialogs import LineScreen, TextRow, TextScreen
from adjourn.tui.listings import (
    PAGE,
    Listing,
    Row,
    RowKey,
    drawn_row,
    is_match,
    matching_asks,
    parsed_key,
    read_ask_rows,
    read_events,
    read_inbox,
    read_rules,
    read_tasks,
)
from adjourn.tui.options import NARROWEST, STEP, WIDEST, TuiOptions
from adjourn.tui.pages import (
    Output,
    Page,
    ShortIds,
    ask_page,
    event_page,
    is_under_way,
    plan_page,
    rule_page,
    transcript_page,
    whole_task_page,
)
from adjourn.tui.row_list import RowList
from adjourn.tui.running import Running
from adjourn.tui.settling import Settling
from adjourn.tui.store_thread import StoreThread
from adjourn.tui.styles import HarmlessText
from adjourn.tui.surface import READ_ONLY
from adjourn.tui.text_pane import TextPane
from adjourn.views.block import BLANK, Block, CommandWriter, Line, Span, line, lines
from adjourn.views.call import short
from adjourn.views.keys import KeyAction, keys_for
from adjourn.views.screen_keys import ScreenKey
from adjourn.wiring import name_of_store

T = TypeVar("T")
MODES = ("inbox", "tasks", "rules", "audit")
_TWO_PANES = 100  # columns from which on the list and the whole are side by side
_SETTLED_PAUSE = 0.03  # seconds after the last key until the pane is read: rows are painted first
_OUTPUT = 0.2  # seconds between two looks at what a run prints, while that is shown
_AGES = 30.0  # seconds after which ages are painted again
_ORDER = {"help": 1, "leave": 1, "new": 3, "filter": 3, "go": 3}  # in the row of keys
_SETTLING = frozenset(
    {
        KeyAction.APPROVE,
        KeyAction.REJECT,
        KeyAction.ANSWER,
        KeyAction.EDIT,
        KeyAction.ALWAYS,
        KeyAction.SNOOZE,
    }
)


class TuiApp(App[None]):
    """The inbox that people live in."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #body { height: 1fr; }
    #top { text-style: reverse; }
    #pane { width: 1fr; border-left: solid $primary; padding-left: 1; }
    .narrow #pane { border-left: none; padding-left: 0; }
    """

    def __init__(
        self,
        roots: Sequence[str],
        *,
        commands_for: Callable[[str], CommandWriter],
        options: TuiOptions,
    ) -> None:
        super().__init__()
        self._options = options
        self._stores = [StoreThread(root) for root in roots]
        self._commands = [commands_for(root) for root in roots]
        self._names = [name_of_store(root).removesuffix("/.adjourn") for root in roots]
        self._hub = Hub(roots)
        self._inside_run = enclosing_run()
        self.arming = Arming()
        self._list = RowList(self._draw_row, id="list")
        self.pane = TextPane(id="pane")
        self._top, self._status = TextRow(id="top"), TextRow(id="status")
        self._keys_row = TextRow(id="keys")
        self.mode = "inbox"
        self.page: Page | None = None  # what the pane shows
        self.page_key: RowKey | None = None
        self._pinned: RowKey | None = None  # shown although another row is selected
        self.face = ""  # another side of the selected task: output, transcript, plan or page
        self._listings: dict[int, Listing] = {}
        self._rows: dict[str, Row] = {}
        self._marked: dict[str, None] = {}  # keys in the order in which they were marked
        self._filter: tuple[str, ...] = ()
        self._troubles: dict[int, str] = {}
        self._dirty: set[int] = set()
        self._is_refreshing = False
        self._changed_tasks: set[str] = set()
        self._pending_page: asyncio.TimerHandle | None = None
        self._is_open = False  # where there is room for one pane only: whether it is the text
        self._width = options.list
        self._output: Output | None = None
        self.command_log: list[str] = []
        self.failure: Exception | None = None  # a defect of ours
        self.decided_here: set[str] = set()
        self._ask_keys, self._task_keys = Settling(self), Running(self)

    @staticmethod
    def theme_names() -> frozenset[str]:
        """Return the themes that a config may name."""
        return frozenset(BUILTIN_THEMES)

    # --- the screen -------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Put a line of what this is above the list and the text, and two lines below."""
        yield self._top
        with Horizontal(id="body"):
            yield self._list
            yield self.pane
        yield self._status
        yield self._keys_row

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Let nothing through to the terminal that it would obey."""
        return [*super().get_line_filters(), HarmlessText()]

    def on_mount(self) -> None:
        """Bind the keys, follow the stores, and read the inbox."""
        self.theme = self._options.theme
        for key in self._options.table:
            binding = Binding(
                ",".join(key.keys),
                f"press('{key.action}')",
                key.word,
                priority=key.action == "interrupt",
            )
            for each in Binding.make_bindings([binding]):
                self._bindings.key_to_bindings.setdefault(each.key, []).append(each)
        self._list.can_focus = self.pane.can_focus = False
        self._place_panes()
        loop = asyncio.get_running_loop()
        self._hub.subscribe(lambda news: loop.call_soon_threadsafe(self._take_news, news))
        self._hub.start()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        self.set_interval(_AGES, self._list.refresh)
        self.set_interval(_OUTPUT, self._follow_output)
        self._dirty = set(range(len(self._stores)))
        self.spawn(self._refresh())
        if self._inside_run:
            self.say(READ_ONLY)

    def on_unmount(self) -> None:
        """Let go of the stores; what runs goes on."""
        self._hub.close()
        for store in self._stores:
            store.close()

    def on_resize(self, event: events.Resize) -> None:
        """Show one pane or two, as the width allows."""
        del event
        self._place_panes()

    def _handle_exception(self, error: Exception) -> None:
        """Leave, and hand a defect to our caller: Textual would print all values."""
        if self.is_headless:
            super()._handle_exception(error)
            return
        self.failure = self.failure or error
        self.exit(return_code=1)

    async def on_event(self, event: events.Event) -> None:
        """Count every key and every button before anything is done for it."""
        if isinstance(event, events.Key | events.MouseDown) and not event.is_forwarded:
            self.arming.note_key(time.monotonic())
        await super().on_event(event)

    def _place_panes(self) -> None:
        is_narrow = self.size.width < _TWO_PANES
        self.screen.set_class(is_narrow, "narrow")
        self._list.display = not (is_narrow and self._is_open)
        self.pane.display = not is_narrow or self._is_open
        self._list.styles.width = "1fr" if is_narrow else f"{self._width}%"
        self._show_keys()

    @property
    def _has_one_pane(self) -> bool:
        return self.size.width < _TWO_PANES

    def say(self, *parts: str | Span) -> None:
        """Show a sentence above the keys, until the next one."""
        self._status.show(*parts)

    def _show_top(self) -> None:
        name = self._names[0] if len(self._names) == 1 else f"{len(self._names)} stores"
        asks = sum(each.asks for each in self._listings.values())
        snoozed = sum(each.snoozed for each in self._listings.values())
        counts = f"{asks:,} open" + (f", {snoozed:,} snoozed" if snoozed else "")
        parts = [f" adjourn {self.mode}"]
        parts += [counts] if self.mode == "inbox" else []
        parts += [f"only: {visible(' '.join(self._filter))}"] if self._filter else []
        parts += [f"{len(self._marked)} marked"] if self._marked else []
        parts += ["read-only"] if self._inside_run else []
        parts += [f"{visible(self._names[at])}: {why}" for at, why in self._troubles.items()]
        parts.append(visible(name))  # last: it may be long, and is cut where the screen ends
        self._top.show("  |  ".join(parts))

    def _show_keys(self) -> None:
        """Show the keys that work on what is selected."""
        found: list[ScreenKey] = []
        page = self.page
        keys = keys_for(page.ask) if page and page.ask else ()
        settling = {key.action for key in keys}
        for key in self._options.table:
            is_there = key.where == "everywhere"
            if key.where == "ask":
                is_there = key.action in settling or (key.action == "mark" and bool(settling))
            elif key.where == "task":
                is_there = bool(page and page.task)
            elif key.action in {"open", "back"}:
                is_there = self._has_one_pane
            if is_there and key.action not in {"wider", "narrower", "interrupt", "log"}:
                found.append(key)
        # What fits on the row is shown; help and the way out come before what is cut first
        found.sort(key=lambda key: _ORDER.get(key.action, 2 if key.where == "task" else 0))
        spans: list[Span] = []
        for key in found:
            spans += [Span(key.keys[0], "strong"), Span(f" {key.word}  ")]
        self._keys_row.show(*spans)

    # --- lists ------------------------------------------------------------------------------------

    def _draw_row(self, text: str, columns: int) -> Line | None:
        row = self._rows.get(text)
        if row is None:
            return None
        store = self._names[parsed_key(text).store] if len(self._stores) > 1 else ""
        return drawn_row(
            row,
            columns=columns,
            now=this_moment(),
            store=visible(os.path.basename(store)),
            is_marked=text in self._marked,
        )

    def _take_news(self, news: News) -> None:
        """Note what happened in a store, and read it again."""
        at = next(at for at, store in enumerate(self._stores) if store.root == news.root)
        if news.trouble:
            self._troubles[at] = prose(news.trouble)
            self._show_top()
            return
        self._troubles.pop(at, None)
        self._dirty.add(at)
        self._changed_tasks |= {each.event.task_id for each in news.events}
        if not self._is_refreshing:
            self.spawn(self._refresh())

    async def _refresh(self) -> None:
        """Read the lists of the stores in which something happened, until nothing does."""
        self._is_refreshing = True
        try:
            while self._dirty:
                dirty, self._dirty = self._dirty, set()
                changed, self._changed_tasks = self._changed_tasks, set()
                mode = self.mode
                for at in sorted(dirty):
                    try:
                        listing = await self._in_store(at, self._reader(at, mode))
                    except AdjournError as error:
                        self._troubles[at] = prose(error.sentence)
                        continue
                    self._troubles.pop(at, None)
                    if mode == self.mode:
                        self._listings[at] = listing
                        for kind, name in listing.keys if listing.rows else ():
                            if name in listing.rows:
                                self._rows[str(RowKey(at, kind, name))] = listing.rows[name]
                self._show_listings()
                task = self.page.task if self.page else None
                if task and task.id in changed:
                    self._request_page(at_once=True)
                await self._task_keys.notice(changed)
        finally:
            self._is_refreshing = False

    def _reader(self, at: int, mode: str) -> Callable[[Controller], Listing]:
        root, words = self._stores[at].root, self._filter
        known = frozenset(parsed_key(text).id for text in self._rows)
        match mode:
            case "tasks":
                return read_tasks
            case "rules":
                return read_rules
            case "audit":
                return read_events
            case _:
                pass

        def read(controller: Controller) -> Listing:
            listing = read_inbox(controller, root, known=known)
            if not words:
                return listing
            found = matching_asks(controller, words)
            rows = {**listing.rows, **found}
            return msgspec.structs.replace(listing, rows=rows)

        return read

    def _show_listings(self) -> None:
        keys: list[str] = []
        ats = sorted(self._listings)
        if self.mode == "rules":
            ats = ats[:1]  # they hold for all stores
        for at in ats:
            for kind, name in self._listings[at].keys:
                key = f"{at}:{kind}:{name}"
                row = self._rows.get(key)
                if not self._filter or (row and is_match(name, row, self._filter)):
                    keys.append(key)
        there = set(keys)
        self._marked = {key: None for key in self._marked if key in there}
        self._list.empty = self._empty_line()
        self._list.set_keys(keys)
        self._show_top()
        if keys:
            if self.page_key is None:
                self._request_page(at_once=True)
        elif not self._pinned and not self._page_is_settled_elsewhere():
            self.page = self.page_key = None
            self.pane.show(())
            self._show_keys()

    def _empty_line(self) -> Line:
        nothing = {
            "inbox": "Nothing waits for you.",
            "tasks": "No tasks.",
            "rules": "There are no always-allow rules.",
            "audit": "Nothing has happened.",
        }
        return line(f"  {'No row has these words.' if self._filter else nothing[self.mode]}")

    async def on_row_list_missing(self, event: RowList.Missing) -> None:
        """Read the page of asks that the list has come to."""
        for text in event.keys[:1]:
            key = parsed_key(text)
            keys = self._listings[key.store].keys if key.store in self._listings else ()
            if key.kind != "ask" or ("ask", key.id) not in keys:
                continue
            start = max(0, keys.index(("ask", key.id)) - PAGE // 4)
            after = keys[start - 1][1] if start else None
            with suppress(AdjournError):
                rows = await self._in_store(key.store, partial(read_ask_rows, after=after))
                for name, row in rows.items():
                    self._rows[str(RowKey(key.store, "ask", name))] = row
                self._list.refresh()

    def on_row_list_selected(self) -> None:
        """Show what was selected, a moment after the last key."""
        selected = self._list.selected
        if self.page_key and selected != str(self.page_key) and self._page_is_settled_elsewhere():
            return  # who looked at it sees the outcome; the next key goes on
        if self._pinned:
            return  # the rows changed, not the person's mind
        self.face = ""
        self._request_page()

    def _page_is_settled_elsewhere(self) -> bool:
        """Return whether the ask in the pane has just left the list, and not by a key of ours."""
        key = self.page_key
        if key is None or key.kind != "ask" or key.id in self.decided_here:
            return False
        listing = self._listings.get(key.store)
        if listing is None or (key.kind, key.id) in listing.keys:
            return False  # a filter hides it, or another list is shown
        self._pinned = key
        self._request_page(at_once=True)
        return True

    def on_row_list_opened(self) -> None:
        """Show the whole of a row that was clicked twice."""
        self._press_open()

    # --- the text ---------------------------------------------------------------------------------

    def _request_page(self, *, at_once: bool = False) -> None:
        """Read what is pinned or selected; of several requests only the last is read."""
        if self._pending_page:
            self._pending_page.cancel()
        loop = asyncio.get_running_loop()
        delay = 0.0 if at_once else _SETTLED_PAUSE
        self._pending_page = loop.call_later(delay, lambda: self.spawn(self._read_page()))

    @property
    def _wanted_key(self) -> RowKey | None:
        selected = self._list.selected
        return self._pinned or (parsed_key(selected) if selected else None)

    async def _read_page(self) -> None:
        key = self._wanted_key
        if key is None:
            return
        face, before = self.face, self.page_key
        try:
            page = await self._in_store(key.store, self._page_reader(key, face))
        except AdjournError as error:
            told = lines([prose(error.sentence), f"try: {prose(error.way_out)}"])
            is_same = self.page is not None and before == key
            page = Page(blocks=told, task=self.page.task if self.page and is_same else None)
        if face != self.face or key != self._wanted_key:
            return  # somebody has gone on
        if before != key or face == "":
            self._output = None
        self.page, self.page_key = page, key
        if face == "output" and page.task:
            self._show_output(page.task)
        else:
            self.pane.show(page.blocks, keeps_place=before == key)
        self._show_keys()

    def _page_reader(self, key: RowKey, face: str) -> Callable[[Controller], Page]:
        root, whole_commands = self._stores[key.store].root, self._commands[key.store]
        columns = self.pane.size.width
        row = self._rows.get(str(key))
        task_id = row.task_id if row else key.id
        by = self.principal

        def read(controller: Controller) -> Page:
            commands = ShortIds(whole_commands, controller.store)
            match key.kind, face:
                case "rule", _:
                    return rule_page(controller, key.id, commands=commands)
                case "event", _:
                    return event_page(controller, int(key.id), commands=commands)
                case _, "transcript":
                    return transcript_page(controller, task_id)
                case _, "plan":
                    with controller.store.read() as view:
                        plan = view.task(task_id).spec.plan
                    if plan is None:
                        raise NotFound(
                            f"task {short(task_id)} belongs to no plan", way_out="p on another task"
                        )
                    return plan_page(controller, plan, task_id, commands=commands, columns=columns)
                case "ask", "":
                    return ask_page(controller, key.id, commands=commands, by=by(controller))
                case _:
                    return whole_task_page(controller, root, task_id, commands=commands)

        return read

    def _show_output(self, task: Task) -> None:
        key = self.page_key
        if key is None:
            return
        if self._output is None or self._output.task_id != task.id:
            self._output = Output(self._stores[key.store].root, task)
            self._output.read(task)
            self.pane.show(self._output.blocks, at_end=True)
            return
        if self._output.read(task):
            is_at_end = self.pane.scroll_offset.y >= self.pane.max_scroll_y - 1
            self.pane.show(self._output.blocks, keeps_place=not is_at_end, at_end=is_at_end)

    def _follow_output(self) -> None:
        """Read what a run has printed, while that is on the screen and the run may print more."""
        if self.face == "output" and self.page and self.page.task and is_under_way(self.page.task):
            self._show_output(self.page.task)

    # --- keys -------------------------------------------------------------------------------------

    def action_press(self, action: str) -> None:
        """Do what a key of the table means."""
        if action == "interrupt":
            self.spawn(self._task_keys.interrupt())
        elif len(self.screen_stack) > 1:
            return  # a dialog has its own keys
        elif action in _SETTLING:
            self._ask_keys.press(KeyAction(action))
        elif action in {"resume", "restart", "cancel", "new"}:
            getattr(self._task_keys, f"press_{action}")()
        else:
            getattr(self, f"_press_{action}")()

    def _press_down(self) -> None:
        self._step(1)

    def _press_up(self) -> None:
        self._step(-1)

    def _step(self, rows: int) -> None:
        if self._has_one_pane and self._is_open:
            self.pane.scroll_relative(y=rows, animate=False)
        elif self._list.selected is not None and self._pinned:
            self._move_to(self._list.cursor)  # it is on the next already
        else:
            self._move_to(self._list.cursor + rows)

    def _move_to(self, number: int) -> None:
        if self._pinned:
            self.face, self._pinned = "", None
            self._request_page()
        self._list.move_to(number)

    def _press_first(self) -> None:
        self._move_to(0)

    def _press_last(self) -> None:
        self._move_to(len(self._list.keys) - 1)

    def _press_page_down(self) -> None:
        self._turn_page(1)

    def _press_page_up(self) -> None:
        self._turn_page(-1)

    def _turn_page(self, pages: int) -> None:
        if self.pane.display:
            rows = pages * max(self.pane.size.height - 1, 1)
            self.pane.scroll_relative(y=rows, animate=False)
        else:
            self._move_to(self._list.cursor + pages * max(self._list.size.height - 1, 1))

    def _press_open(self) -> None:
        self._is_open = True
        self._place_panes()

    def _press_back(self) -> None:
        if self.face:
            self.face = ""
            self._request_page(at_once=True)
        elif self._pinned and self._list.selected:
            self._move_to(self._list.cursor)
        elif self._has_one_pane and self._is_open:
            self._is_open = False
            self._place_panes()
        elif self._filter:
            self._set_filter("")

    def _press_leave(self) -> None:
        self.exit()

    def _press_wider(self) -> None:
        self._width = min(self._width + STEP, WIDEST)
        self._place_panes()

    def _press_narrower(self) -> None:
        self._width = max(self._width - STEP, NARROWEST)
        self._place_panes()

    def _press_help(self) -> None:
        blocks: list[Block] = [line(Span("Keys", "strong")), BLANK]
        blocks += [
            line(Span(f"{', '.join(key.keys):<12}", "strong"), key.sentence)
            for key in self._options.table
        ]
        self._show_text(blocks)

    def _press_log(self) -> None:
        blocks: list[Block] = [line(Span("Commands that do what you did here", "strong")), BLANK]
        blocks += [line(Span(each, "code")) for each in self.command_log]
        self._show_text(blocks if self.command_log else [*blocks, line("Nothing yet.")])

    def _show_text(self, blocks: Sequence[Block]) -> None:
        self.push_screen(TextScreen(blocks, arming=self.arming))

    def _press_filter(self) -> None:
        self.spawn(self._ask_filter())

    async def _ask_filter(self) -> None:
        asked = [line("Show only rows with these words; nothing shows all.")]
        text = await self.ask_line(asked, value=" ".join(self._filter))
        if text is not None:
            self._set_filter(text)

    def _set_filter(self, text: str) -> None:
        self._filter = tuple(text.split())
        self._dirty = set(range(len(self._stores)))
        if not self._is_refreshing:
            self.spawn(self._refresh())

    def _press_go(self) -> None:
        self.spawn(self._go())

    async def _go(self) -> None:
        asked = [line(f"Go to: {', '.join(MODES)}, or the id of an ask or task.")]
        name = (await self.ask_line(asked) or "").strip().removeprefix(":")
        if name in MODES:
            self._set_mode(name)
        elif name:
            await self._go_to_id(name)

    def _set_mode(self, mode: str) -> None:
        self.mode, self.face, self._filter, self._pinned = mode, "", (), None
        self._listings.clear()
        self._list.set_keys(())
        self._marked.clear()
        self.page = self.page_key = None
        self._is_open = False
        self._place_panes()
        self._dirty = set(range(len(self._stores)))
        if not self._is_refreshing:
            self.spawn(self._refresh())

    async def _go_to_id(self, name: str) -> None:
        for at in range(len(self._stores)):
            try:
                found = await self._in_store(at, lambda controller: controller.decisions.find(name))
            except AdjournError as error:
                self.say(prose(error.sentence))
                continue
            kind = "task" if isinstance(found, Task) else "ask"
            key = RowKey(at, kind, found.id)
            if str(key) in self._list.keys:
                self._list.move_to(list(self._list.keys).index(str(key)))
            self.show_key(key)
            self.say("")
            return

    def _press_output(self) -> None:
        self._turn_face("output")

    def _press_transcript(self) -> None:
        self._turn_face("transcript")

    def _press_plan(self) -> None:
        self._turn_face("plan")

    def _press_page(self) -> None:
        self._turn_face("page")

    def _turn_face(self, face: str) -> None:
        if self.page and self.page.task:
            self.face = face
            self._output = None
            self._is_open = True
            self._place_panes()
            self._request_page(at_once=True)

    def _press_mark(self) -> None:
        selected = self._list.selected
        if selected is None or parsed_key(selected).kind != "ask":
            return
        if selected in self._marked:
            del self._marked[selected]
        else:
            self._marked[selected] = None
        self._list.refresh()
        self._show_top()
        self._list.move_to(self._list.cursor + 1)

    # --- what actions need of it ------------------------------------------------------------------

    @property
    def is_read_only(self) -> bool:
        """Whether nothing may be changed from here: inside a run."""
        return bool(self._inside_run)

    @property
    def marked_keys(self) -> list[RowKey]:
        """The asks that are marked, in the order in which they were."""
        return [parsed_key(text) for text in self._marked]

    def unmark_all(self) -> None:
        """Mark nothing any more."""
        self._marked.clear()
        self._list.refresh()
        self._show_top()

    def root(self, at: int) -> str:
        """Return where a store is."""
        return self._stores[at].root

    def commands(self, at: int) -> CommandWriter:
        """Return what writes commands for a store."""
        return self._commands[at]

    def what(self, key: RowKey) -> str:
        """Return what the row of a key says."""
        row = self._rows.get(str(key))
        return row.what if row else ""

    async def ask_line(
        self,
        blocks: Sequence[Block],
        *,
        value: str = "",
        check: Callable[[str], str | None] | None = None,
    ) -> str | None:
        """Ask for a line of text; None if the person left it."""
        return await self.push_screen_wait(LineScreen(blocks, value=value, check=check))

    async def confirm(self, blocks: Sequence[Block], question: str) -> bool:
        """Show something whole, and return whether the person said yes to it."""
        screen = TextScreen(blocks, arming=self.arming, question=question)
        is_agreed: bool = await self.push_screen_wait(screen)
        return is_agreed

    def run_editor(self, edit: Callable[[], T]) -> T:
        """Leave the terminal to an editor for as long as it runs."""
        try:
            with self.suspend():
                return edit()
        except SuspendNotSupported:  # a screen without a terminal
            return edit()

    def show_key(self, key: RowKey, *, face: str = "") -> None:
        """Show something in the pane that need not be selected."""
        self.face, self._pinned = face, key
        self._output = None
        self._is_open = True
        self._place_panes()
        self._request_page(at_once=True)

    def quit(self) -> None:
        """Leave. What runs goes on."""
        self.exit()

    def note(self, at: int, words: Sequence[str], sentence: str = "") -> None:
        """Keep the command that does the same, and show it behind a sentence."""
        command = self._commands[at](*words)
        self.command_log.append(command)
        if sentence:
            self.say(f"{sentence}  ", Span(command, "code"))

    # --- work in threads --------------------------------------------------------------------------

    def principal(self, controller: Controller) -> Principal:
        """Return who is at the keyboard, as a store says."""
        return controller.decisions.principal(inside_run=self._inside_run)

    def _in_store(self, at: int, work: Callable[[Controller], T]) -> "asyncio.Future[T]":
        return asyncio.wrap_future(self._stores[at].submit(work))

    async def done(self, at: int, work: Callable[[Controller], T]) -> T | None:
        """Do something in a store; where it is refused, say why, and return None."""
        try:
            return await self._in_store(at, work)
        except AdjournError as error:
            self.say_error(error)
            return None

    def say_error(self, error: AdjournError) -> None:
        """Show what went wrong, and what helps."""
        parts = [prose(error.sentence)]
        if isinstance(error, NothingRecorded):
            parts += [
                f"{short(item.ask_id)} {item.result}: {prose(item.error.sentence)}"
                for item in error.items
                if item.error
            ]
        if error.way_out:
            parts.append(f"try: {prose(error.way_out)}")
        self.say(Span("; ".join(parts), "danger"))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something while the TUI goes on."""
        self.run_worker(work, exclusive=False)

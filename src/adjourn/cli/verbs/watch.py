"""adjourn watch: a live table of what runs, waits and has ended."""

import gc
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, key_by_key, print_exactly, printed
from adjourn.cli.verbs._home_of_asks import all_roots, short_store_name
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.documents import plain_json
from adjourn.core.errors import AdjournError
from adjourn.core.redact import Redactor
from adjourn.core.text.render import prose
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Happened
from adjourn.hub import Hub, News
from adjourn.system.machine import now
from adjourn.system.poll import Poll, deferred_signals
from adjourn.views.block import BLANK, Span, line
from adjourn.views.call import short
from adjourn.views.overview import OverviewTask, overview_blocks
from adjourn.wiring import name_of_store
from adjourn.wiring.controller import open_controller
from adjourn.wiring.live_tasks import LiveTasks

_STDIN = 0
_SETTLING = 5.0  # seconds between two looks for runs whose supervisor has died
_CLOCK = 1.0  # seconds after which the times in the table are drawn again
_AROUND_TABLE = 7  # rows: the counts, the head, blanks, what is left out and the last line
_LEAVE_KEYS = frozenset(b"q\x04")
# The terminal's second screen, without a cursor, and back
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)


class EventDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as `watch --output json` prints it: one document on each line."""

    schema_version: int = 1
    store: str
    place: int
    task_id: str
    kind: str
    by: str
    at: str
    facts: dict[str, str | int | None]


@verb("watch")
@click.option("--everywhere", is_flag=True, help="All your stores, not only this one.")
def command(session: Session, *, everywhere: bool) -> int:
    """Show what runs, waits and has ended, and keep it up to date until you press q or Ctrl+C.

    The tasks go on when you leave. Where stdout is no terminal, each change is a line;
    with --output json, each event is a document on one line.
    """
    roots = all_roots(session) if everywhere else [session.root]
    if not everywhere or not roots:
        session.require_store()
    gc.enable()  # short commands go without; this one lasts
    wake = _Wake()
    redactor = session.redactor_of_text
    readers = [_Reader(session, root, wake=wake, redactor=redactor) for root in roots]
    for reader in readers if everywhere else ():
        reader.store_name = short_store_name(reader.root)
    hub = Hub([reader.root for reader in readers])
    hub.subscribe(lambda news: _hand_on(readers, news))
    is_screen = sys.stdout.isatty() and not session.wants_json and os.environ.get("TERM") != "dumb"
    with closing(hub):
        hub.start()
        for reader in readers:
            reader.start()
        if is_screen:
            _show_table(session, readers, wake)
        else:
            _print_changes(session, readers, wake)
    return exits.COMPLETED


def _hand_on(readers: Sequence["_Reader"], news: News) -> None:
    for reader in readers:
        if reader.root == news.root:
            reader.news.put(news)


class _Wake:
    """A pipe by which readers wake the thread that shows what they read."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        return self._reading

    def drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reading, 4096):
                pass

    def wake(self) -> None:
        with suppress(BlockingIOError):  # a full pipe has a wake-up waiting already
            os.write(self._writing, b"\1")


class _Reader(threading.Thread):
    """Reads one store when the hub has news of it; a store that does not answer stops only this."""

    def __init__(
        self, session: Session, root: str, *, wake: _Wake, redactor: Redactor | None
    ) -> None:
        super().__init__(name=f"adjourn watch {root}", daemon=True)
        self.root = root
        self.news: queue.Queue[News] = queue.Queue()
        self.changed: queue.Queue[OverviewTask | Happened] = queue.Queue()
        self.tasks: list[OverviewTask] = []
        self.trouble: str | None = None
        self.store_name = ""  # where several stores are shown
        self.printed: dict[str, str] = {}  # what was printed last of each task
        self._session = session
        self._wake = wake
        self._redactor = redactor

    def run(self) -> None:
        opened: tuple[Controller, LiveTasks] | None = None
        while True:
            try:
                news: News | None = self.news.get(timeout=_SETTLING)
            except queue.Empty:
                news = None
            try:
                if opened is None:
                    made = open_controller(self.root)
                    opened = (
                        made,
                        LiveTasks(made.store, name=self.store_name, redactor=self._redactor),
                    )
                    opened[1].read_all()
                controller, live = opened
                if self.root == self._session.root:
                    self._session.settle(controller)
                if news is None:
                    continue
                if news.trouble:
                    raise AdjournError(news.trouble, way_out="adjourn doctor")
                if news.is_opening:
                    live.read_all()
                changed = list(dict.fromkeys(each.event.task_id for each in news.events))
                live.read(changed)
                self.trouble, self.tasks = None, live.tasks
                for happened in news.events:
                    self.changed.put(happened)
                for task in self.tasks:
                    if task.task.id in changed:
                        self.changed.put(task)
            except AdjournError as error:
                self.trouble = f"{prose(name_of_store(self.root))}: {prose(error.sentence)}"
                opened = None
            self._wake.wake()


def _show_table(session: Session, readers: Sequence[_Reader], wake: _Wake) -> None:
    """Draw the table whenever something happened, the clock went on, or the window changed."""
    with ExitStack() as stack:
        signals = stack.enter_context(deferred_signals(_SIGNALS))
        is_read = sys.stdin.isatty()
        if is_read:
            stack.enter_context(key_by_key())
        print_exactly(_ENTER)
        stack.callback(_leave_screen)
        poll = Poll(wake, signals)
        if is_read:
            poll.add(_STDIN)
        while not signals.count(*_SIGNALS[:-1]):
            _draw(session, readers)
            ready = poll.wait(_CLOCK)
            if is_read and _STDIN in ready:
                typed = os.read(_STDIN, 64)
                if not typed or _LEAVE_KEYS & set(typed):
                    return


def _leave_screen() -> None:
    print_exactly(_LEAVE)
    flush()


def _draw(session: Session, readers: Sequence[_Reader]) -> None:
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except OSError:
        rows = 24
    troubles = [reader.trouble for reader in readers if reader.trouble]
    tasks = [task for reader in readers for task in reader.tasks]
    blocks = overview_blocks(
        tasks, now=now(), rows=rows - _AROUND_TABLE - len(troubles), troubles=troubles
    )
    hint = f"q leaves; tasks go on. What waits: {session.commands('inbox')}"
    blocks += [BLANK, line(Span(hint, "muted"))]
    text = printed(blocks, sys.stdout).split("\n")[: rows - 1]
    # From the top left, each row cleared to its end, then all below: nothing flickers
    with suppress(OSError, ValueError):
        sys.stdout.write("\x1b[H" + "".join(f"{row}\x1b[K\r\n" for row in text) + "\x1b[J")
    flush()


def _print_changes(session: Session, readers: Sequence[_Reader], wake: _Wake) -> None:
    """Print a line for each task that changed, or a document for each event."""
    with deferred_signals(_SIGNALS[:-1]) as signals:
        poll = Poll(wake, signals)
        while not signals.count():
            for reader in readers:
                while not reader.changed.empty():
                    _print_change(session, reader, reader.changed.get())
            flush()
            if sys.stdout.name == os.devnull:  # its reader has left
                return
            poll.wait(60.0)


def _print_change(session: Session, reader: _Reader, change: OverviewTask | Happened) -> None:
    if isinstance(change, Happened) and session.wants_json:
        event = change.event
        document = EventDoc(
            store=name_of_store(reader.root),
            place=change.place,
            task_id=event.task_id,
            kind=event.kind,
            by=event.by,
            at=stamp(event.at),
            facts=dict(event.facts),
        )
        clean = session.open_redactor().document(document)
        print_exactly(plain_json(msgspec.json.encode(clean).decode()))
    elif isinstance(change, OverviewTask) and not session.wants_json:
        task = change.task
        words = f"{task.state:<9}  {short(task.id)}  {change.what}"
        if reader.printed.get(task.id) != words:
            reader.printed[task.id] = words
            session.print(f"{stamp(task.updated_at)}  {words}")

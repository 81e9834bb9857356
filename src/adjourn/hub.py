"""Follows the trails of any number of stores in one thread, and tells subscribers what happened.

Nothing polls. Each store has one connection, one listener and one cursor on its trail, however many
subscribers there are. A store that does not answer delays no other.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from adjourn.core.backoff import backoff
from adjourn.core.errors import AdjournError, StoreProblem
from adjourn.core.trail.events import Happened
from adjourn.ports.store import Listener, Store
from adjourn.wiring import is_shared, open_store

_PAGE = 500  # events
_REPAIR = 5.0  # seconds after which a store is read without a wake-up, in case one was lost
_UNWOKEN = 2.0  # the same for a store whose listener cannot be woken
_FIRST_TRY, _LONGEST_REST = 1.0, 30.0  # seconds before a store that cannot be read is opened again


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one store, oldest first.

    Without events it says that the store is readable from now on, or why it is not. A surface
    reads the store after subscribing, and again when it became readable.
    """

    root: str
    events: tuple[Happened, ...] = ()
    trouble: str | None = None

    @property
    def is_opening(self) -> bool:
        """Whether the store has just become readable."""
        return not self.events and self.trouble is None


Receiver = Callable[[News], object]  # what it returns is ignored


class Hub:
    """One thread that waits for all stores at once.

    A receiver is called in the hub's threads: it hands the news on and returns. For asyncio that is
    `loop.call_soon_threadsafe`.
    """

    def __init__(self, roots: Iterable[str], *, repair: float = _REPAIR) -> None:
        self._lock = threading.Lock()
        self._receivers: dict[int, Receiver] = {}
        self._by_task: dict[str, dict[int, Receiver]] = {}
        self._subscriptions = 0
        self._stores = {root: _FollowedStore(root, repair) for root in dict.fromkeys(roots)}
        self._done: deque[_FollowedStore] = deque()  # databases that were read
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._is_closed = False
        self._thread = threading.Thread(target=self._follow, name="adjourn hub", daemon=True)

    def start(self) -> None:
        """Begin to follow; subscribe first to miss no opening."""
        self._thread.start()

    def subscribe(self, receive: Receiver, *, task_id: str | None = None) -> Callable[[], None]:
        """Have a receiver called for all news, or for one task's events; return what ends that."""
        with self._lock:
            self._subscriptions += 1
            number = self._subscriptions
            group = self._receivers if task_id is None else self._by_task.setdefault(task_id, {})
            group[number] = receive

        def end() -> None:
            with self._lock:
                group.pop(number, None)
                if task_id is not None and not group and self._by_task.get(task_id) is group:
                    del self._by_task[task_id]

        return end

    def close(self) -> None:
        """Stop following; a database that does not answer is left to its own end."""
        self._is_closed = True
        self._wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    # --- the thread -------------------------------------------------------------------------------

    def _follow(self) -> None:
        try:
            while not self._is_closed:
                self._wait()
                if self._is_closed:
                    return
                while self._done:
                    followed = self._done.popleft()
                    followed.is_busy = False
                    self._tell(followed)
                for followed in self._stores.values():
                    if followed.is_due():
                        self._read(followed)
        finally:
            for followed in self._stores.values():
                if not followed.is_busy:
                    followed.close()

    def _wait(self) -> None:
        """Wait for a wake-up of any store that is not being read, or until one is due."""
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        idle = [each for each in self._stores.values() if not each.is_busy]
        listening = {each.fileno(): each for each in idle if each.fileno() >= 0}
        for fd in listening:
            poll.register(fd, select.POLLIN)
        due = min((each.due_at for each in idle), default=time.monotonic() + _REPAIR)
        for fd, _ in poll.poll(max(0.0, due - time.monotonic()) * 1000):
            if fd in listening:
                listening[fd].due_at = 0.0
            else:
                with suppress(BlockingIOError):
                    os.read(self._reading, 4096)

    def _read(self, followed: "_FollowedStore") -> None:
        # A directory answers at once. A database may not: it is read in a thread that lasts as long
        # as the request, and the hub goes on with the others.
        if not followed.is_shared:
            followed.read()
            self._tell(followed)
            return

        def read() -> None:
            followed.read()
            self._done.append(followed)
            self._wake()

        followed.is_busy = True
        threading.Thread(target=read, name=f"adjourn hub {followed.root}", daemon=True).start()

    def _wake(self) -> None:
        with suppress(OSError):  # a full pipe has a wake-up waiting already
            os.write(self._writing, b"\1")

    def _tell(self, followed: "_FollowedStore") -> None:
        while followed.news:
            news = followed.news.popleft()
            with self._lock:
                calls = [(self._receivers, each, news) for each in self._receivers.items()]
                for task_id in {happened.event.task_id for happened in news.events}:
                    if group := self._by_task.get(task_id):
                        own = [each for each in news.events if each.event.task_id == task_id]
                        part = News(root=news.root, events=tuple(own))
                        calls += [(group, each, part) for each in group.items()]
            for group, (number, receive), part in calls:
                try:
                    receive(part)
                except Exception:  # noqa: BLE001 -- it belongs to somebody who has left; the others go on
                    with self._lock:
                        group.pop(number, None)


class _FollowedStore:
    """One store: its connection, its listener, and how far its trail was read."""

    def __init__(self, root: str, repair: float) -> None:
        self.root = root
        self._repair = repair
        self.is_shared = is_shared(root)
        self.is_busy = False  # a thread reads it
        self.due_at = 0.0  # when it is read without a wake-up
        self.news: deque[News] = deque()
        self._opened: tuple[Store, Listener] | None = None
        self._cursor: int | None = None  # the place of the trail up to which all was told
        self._directory: tuple[int, int] | None = None
        self._tries = 0

    def fileno(self) -> int:
        """Return what to poll, or -1 while the store cannot be read."""
        return self._opened[1].fileno() if self._opened else -1

    def is_due(self) -> bool:
        return not self.is_busy and self.due_at <= time.monotonic()

    def read(self) -> None:
        """Open the store if need be, and collect what happened since the last time."""
        try:
            if self._directory != self._identity():
                self.close()
            store, listener = self._opened or self._open()
            listener.drain()
            self._collect(store)
        except (AdjournError, OSError) as error:
            why = error.sentence if isinstance(error, AdjournError) else str(error)
            self.close()
            if not self._tries:
                self.news.append(News(root=self.root, trouble=why))
            self._tries += 1
            rest = backoff(self._tries, first=_FIRST_TRY, longest=_LONGEST_REST)
            self.due_at = time.monotonic() + rest
            return
        if self._tries:  # the trouble was reported, so its end is reported, too
            self.news.appendleft(News(root=self.root))
        self._tries = 0
        self.due_at = time.monotonic() + (_UNWOKEN if listener.trouble else self._repair)

    def _open(self) -> tuple[Store, Listener]:
        """Open the store. The listener is there before the trail is read, so nothing is missed."""
        self._directory = self._identity()
        if self._directory is None:  # opening it would make a new one
            raise StoreProblem(f"{self.root} is gone", way_out="adjourn doctor")
        store = open_store(self.root)
        try:
            self._opened = store, store.listen()
        except BaseException:
            store.close()
            raise
        if self._cursor is None:
            with store.read() as view:
                self._cursor, _ = view.trail_head()
            self.news.append(News(root=self.root))
        return self._opened

    def _collect(self, store: Store) -> None:
        cursor = self._cursor or 0
        while True:
            with store.read() as view:
                events = view.happened(after=cursor, limit=_PAGE)
                head = cursor if events else view.trail_head()[0]
            if not events:
                break
            cursor = events[-1].place
            self.news.append(News(root=self.root, events=tuple(events)))
        if head < cursor:  # an older copy was accepted in its place: all of it may differ
            cursor = head
            self.news.append(News(root=self.root))
        self._cursor = cursor

    def _identity(self) -> tuple[int, int] | None:
        """Return which directory it is: one that was replaced is another store."""
        try:
            found = os.stat(self.root)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Let go of the store; how far it was read stays known."""
        with suppress(AdjournError, OSError):
            for each in reversed(self._opened or ()):
                each.close()
        self._opened = None

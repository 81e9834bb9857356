"""The newest events of the store, kept once for any number of streams."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from adjourn.core.trail.events import Happened
from adjourn.hub import Hub, News

_KEPT = 2_000  # events
_PAGE = 500

# Reads the events after a place, oldest first
ReadEvents = Callable[[int, int], Awaitable[Sequence[Happened]]]


class Feed:
    """Lets streams follow the trail. A stream has a place in it and nothing else.

    All of it happens in the event loop: the hub's thread only hands news over.
    """

    def __init__(self, hub: Hub, read: ReadEvents) -> None:
        self._hub = hub
        self._read = read
        self._kept: deque[Happened] = deque()
        self._floor: int | None = None  # all events after this place are kept
        self._changed = asyncio.Event()
        self._is_closed = False
        self._end: Callable[[], None] = lambda: None
        self.watchers: list[Callable[[Sequence[Happened]], None]] = []  # called in the event loop

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to keep what the hub tells."""
        self._end = self._hub.subscribe(lambda news: loop.call_soon_threadsafe(self._take, news))

    def close(self) -> None:
        """End all streams."""
        self._end()
        self._is_closed = True
        self._wake()

    def _take(self, news: News) -> None:
        if news.is_opening:  # it may be another trail: what was kept may not be of it
            self._kept.clear()
            self._floor = None
        for happened in news.events:
            if self._floor is None:
                self._floor = happened.place - 1
            self._kept.append(happened)
        while len(self._kept) > _KEPT:
            self._floor = self._kept.popleft().place
        self._wake()
        for watch in self.watchers if news.events else ():
            watch(news.events)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self, after: int, *, rest: float) -> AsyncIterator[Sequence[Happened]]:
        """Return pages of what happens after a place, without gap and without end.

        An empty page comes when nothing happened for so many seconds.
        """
        while not self._is_closed:
            # Taken before anything is read: what happens from here on sets it
            changed = self._changed
            if self._floor is not None and after >= self._floor:
                page: Sequence[Happened] = [each for each in self._kept if each.place > after]
            else:
                page = await self._read(after, _PAGE)
            if page:
                after = page[-1].place
                yield page
                continue
            try:
                await asyncio.wait_for(changed.wait(), rest)
            except TimeoutError:
                yield ()

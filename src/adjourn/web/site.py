"""What every request works with: the store, its controllers in threads, and what happens in it."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import msgspec
from starlette.requests import HTTPConnection

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError, NotFound
from adjourn.core.redact import Redactor
from adjourn.core.trail.events import Happened
from adjourn.hub import Hub
from adjourn.settings.config import open_redactor
from adjourn.views.block import CommandWriter
from adjourn.web.feed import Feed
from adjourn.web.metrics import Metrics
from adjourn.web.supervisors import Supervisors
from adjourn.wiring.controller import open_controller

T = TypeVar("T")

_THREADS = 4


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is reached: what its links begin with, and which names are its own."""

    public_url: str  # without a slash at its end
    hosts: frozenset[str]  # names that the Host header may have, without the port
    is_secure: bool  # browsers reach it by HTTPS
    socket: str | None = None  # the path of a unix socket, where it listens on one


class Site:
    """One server's store. Requests reach it through `call`, which runs in a thread."""

    def __init__(
        self, root: str, *, address: Address, commands: CommandWriter, through: str
    ) -> None:
        self.root = root
        self.through = through  # the server's own user or login: who speaks through it is no more
        self.address = address
        self.commands = commands
        self.hub = Hub([root])
        self.feed = Feed(self.hub, self._read_events)
        self.stopping = asyncio.Event()  # streams and waits end when it is set
        self.redactor: Redactor = open_redactor()
        self.supervisors = Supervisors(root)
        self.feed.watchers.append(self._start_queued)
        self._starting: set[asyncio.Task[None]] = set()
        self.metrics = Metrics()
        self.closing: list[Callable[[], object]] = []  # what else ends with the server
        self._local = threading.local()
        self._opened: list[Controller] = []
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="adjourn web")

    def start(self) -> None:
        """Begin to follow the store."""
        self.feed.start(asyncio.get_running_loop())
        self.hub.start()

    def stop(self) -> None:
        """Have streams and waits end; requests that are being answered go on."""
        self.stopping.set()
        self.feed.close()

    def close(self) -> None:
        """Let go of the store, once nothing uses it any more."""
        for end in self.closing:
            end()
        self.hub.close()
        self._threads.shutdown(wait=True)
        for controller in self._opened:
            with suppress(AdjournError):
                controller.store.close()

    async def call(self, act: Callable[[Controller], T]) -> T:
        """Call a function with a controller, in a thread that has one of its own.

        What dead supervisors left is settled first.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._call, act)

    def _call(self, act: Callable[[Controller], T]) -> T:
        controller = self._controller()
        if not controller.decisions.is_settled:
            controller.runs.recover()
        return act(controller)

    def _controller(self) -> Controller:
        # A connection to SQLite belongs to one thread; a directory that was replaced is another
        # store, and its connection would go on with the old one.
        try:
            found = os.stat(self.root)
        except OSError:
            raise NotFound(
                f"there is no store at {self.root}", way_out="adjourn run -- COMMAND"
            ) from None
        identity = found.st_dev, found.st_ino
        kept: tuple[tuple[int, int], Controller] | None = getattr(self._local, "kept", None)
        if kept and kept[0] == identity:
            return kept[1]
        if kept:
            self._opened.remove(kept[1])
            with suppress(AdjournError):
                kept[1].store.close()
        controller = open_controller(self.root)
        self._local.kept = identity, controller
        self._opened.append(controller)
        return controller

    def _start_queued(self, events: Sequence[Happened]) -> None:
        """Have the tasks go on that somebody queued through a server: by a form, a button, a reply.

        The person who decides does not wait for the start.
        """
        queued = self.supervisors.queued_in(events)
        if queued:
            going = asyncio.get_running_loop().create_task(
                self.call(lambda controller: self.supervisors.go_on(controller, queued))
            )
            self._starting.add(going)
            going.add_done_callback(self._starting.discard)

    async def _read_events(self, after: int, limit: int) -> list[Happened]:
        def read(controller: Controller) -> list[Happened]:
            with controller.store.read() as view:
                return view.happened(after=after, limit=limit)

        return await self.call(read)


def site_of(request: HTTPConnection) -> Site:
    """Return the site that a request is to."""
    site = request.app.state.site
    assert isinstance(site, Site)  # noqa: S101 -- `build_app` put it there
    return site

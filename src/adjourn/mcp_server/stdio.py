"""MCP over stdin and stdout: one loop that polls stdin and the store's wake-ups, and no thread.

The process supervises nothing. A host ends it with SIGINT, SIGTERM or by closing stdin, and what
it started goes on.
"""

import os
import select
import signal
import time
from contextlib import suppress
from types import FrameType

import msgspec

from adjourn.core.errors import AdjournError, StoreProblem
from adjourn.mcp_server.protocol import (
    INVALID_REQUEST,
    Cancelled,
    Connection,
    Id,
    Json,
    Request,
    Subscribed,
    Waiting,
    failure,
    progress_notice,
    updated,
)
from adjourn.mcp_server.server import ToolServer

TYPE_CHECKING = False

if TYPE_CHECKING:  # the store is opened after the first answers
    from adjourn.ports.store import Listener

LARGEST_MESSAGE = 4 * 1024 * 1024
_PIECE = 256 * 1024
_REPAIR = 5.0  # seconds between two looks without a wake-up, while somebody waits
_PROGRESS = 15.0
_EVENTS = 500  # of the trail, read at once


class _Ended(Exception):
    """The host wants us to leave."""


class StdioServer:
    """Serves one client on two descriptors."""

    def __init__(self, server: ToolServer, *, reads: int = 0, writes: int = 1) -> None:
        self._server = server
        self._connection = Connection(server)
        self._reads = reads
        self._writes = writes
        self._buffer = bytearray()
        self._is_skipping = False  # the rest of a message that is too large
        self._waits: dict[Id, tuple[Request, Waiting, float]] = {}
        self._streams: dict[Id, tuple[Request, frozenset[str]]] = {}
        self._listener: Listener | None = None
        self._place = 0  # in the trail: what happened before it was told
        self._told_progress = time.monotonic()

    def serve(self) -> None:
        """Answer until the client leaves or a signal comes. No signal pauses anything."""

        def leave(_number: int, _frame: FrameType | None) -> None:
            raise _Ended

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)
        poll = select.poll()
        poll.register(self._reads, select.POLLIN | select.POLLHUP)
        try:
            while True:
                self._listen_if_needed(poll)
                ready = {fd for fd, _ in poll.poll(self._patience())}
                if self._listener and self._listener.fileno() in ready:
                    self._listener.drain()
                    self._look(is_woken=True)
                if self._reads in ready and not self._read():
                    break
                self._look(is_woken=False)
        except (_Ended, BrokenPipeError):
            pass  # a host that is gone needs no reply
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            if self._listener:
                self._listener.close()

    # --- messages ---------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Answer what has come; return whether there may be more."""
        piece = os.read(self._reads, _PIECE)
        if not piece:
            return False
        self._buffer += piece
        while (end := self._buffer.find(b"\n")) >= 0:
            message = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if self._is_skipping:
                self._is_skipping = False
            elif message.strip():
                self._answer(message)
        if len(self._buffer) > LARGEST_MESSAGE:
            if not self._is_skipping:
                most = LARGEST_MESSAGE // (1024 * 1024)
                self._send(failure(None, INVALID_REQUEST, f"a message may have {most} MB"))
            self._is_skipping = True
            self._buffer.clear()
        return True

    def _answer(self, message: bytes) -> None:
        if len(message) > LARGEST_MESSAGE:
            most = LARGEST_MESSAGE // (1024 * 1024)
            self._send(failure(None, INVALID_REQUEST, f"a message may have {most} MB"))
            return
        read = self._connection.read(message)
        if isinstance(read, Cancelled):
            self._waits.pop(read.id, None)
            stream = self._streams.pop(read.id, None)
            if stream:
                self._send(self._connection.closing(stream[0]))
        elif isinstance(read, Request):
            answer = self._connection.answer(read)
            if isinstance(answer, Subscribed):
                self._streams[read.id] = (read, answer.uris)
                self._send(answer.acknowledgement)
            elif isinstance(answer, dict):
                self._send(answer)
            else:
                self._waits[read.id] = (read, answer, time.monotonic())
        elif read is not None:
            self._send(read)

    def _send(self, message: Json) -> None:
        rest = memoryview(msgspec.json.encode(message) + b"\n")
        while rest:
            rest = rest[os.write(self._writes, rest) :]

    # --- waiting ----------------------------------------------------------------------------------

    @property
    def _is_watching(self) -> bool:
        return bool(self._waits or self._streams or self._connection.legacy_uris)

    def _listen_if_needed(self, poll: select.poll) -> None:
        """Open the ear before anything is read for a wait, so that nothing is missed between."""
        if self._listener or not self._is_watching:
            return
        store = self._server.control.controller.store
        self._listener = store.listen()
        poll.register(self._listener.fileno(), select.POLLIN)
        with store.read() as view:
            self._place = view.trail_head()[0]
        self._finish_waits(None)

    def _patience(self) -> float | None:
        """Return how many milliseconds to sleep at most; without a wait, until a message comes."""
        if not self._is_watching:
            return None
        now = time.monotonic()
        ends = [wait.deadline for _, wait, _ in self._waits.values() if wait.deadline is not None]
        ends.append(now + _REPAIR)
        if any(request.progress_token is not None for request, _, _ in self._waits.values()):
            ends.append(self._told_progress + _PROGRESS)
        return max(0.0, min(ends) - now) * 1000 + 1

    def _look(self, *, is_woken: bool) -> None:
        """Check what happened, finish waits that are ready or late, and report progress."""
        if not self._is_watching or not self._listener:
            return
        if is_woken:
            self._finish_waits(self._changed_tasks())
        else:
            late = [
                name
                for name, (_, wait, _) in self._waits.items()
                if wait.deadline is not None and wait.deadline <= time.monotonic()
            ]
            for name in late:
                self._finish(name)
        now = time.monotonic()
        if now - self._told_progress >= _PROGRESS:
            self._told_progress = now
            for request, wait, began in list(self._waits.values()):
                notice = progress_notice(request, int(now - began), wait.progress())
                if notice:
                    self._send(notice)
            # A lost wake-up, or a supervisor that died, is found here
            with suppress(AdjournError):
                self._server.control.settle()
            self._finish_waits(None)

    def _changed_tasks(self) -> frozenset[str]:
        """Return the tasks of which something was told since the last look, and tell streams."""
        changed: set[str] = set()
        uris: dict[str, None] = {}
        # Only who has a stream open needs it
        from adjourn.mcp_server.resources import uris_of

        with self._server.control.controller.store.read() as view:
            while page := view.happened(after=self._place, limit=_EVENTS):
                self._place = page[-1].place
                for happened in page:
                    changed.add(happened.event.task_id)
                    uris |= dict.fromkeys(uris_of(happened.event.task_id, happened.event.kind))
        for uri in uris:
            if uri in self._connection.legacy_uris:
                self._send(updated(uri))
            for request, wanted in self._streams.values():
                if uri in wanted:
                    self._send(updated(uri, request.id))
        return frozenset(changed)

    def _finish_waits(self, changed: frozenset[str] | None) -> None:
        for name, (_, wait, _) in list(self._waits.items()):
            if changed is None or wait.concerns(changed):
                self._finish(name)

    def _finish(self, name: Id) -> None:
        request, wait, _ = self._waits[name]
        is_late = wait.deadline is not None and wait.deadline <= time.monotonic()
        try:
            result = self._server.finish(lambda: wait.result(is_late=is_late))
        except StoreProblem:
            return  # it is looked at again
        if isinstance(result, dict):
            del self._waits[name]
            self._send(self._connection.reply(request, result))

"""One thread for each store: all that a TUI reads of it and writes to it happens there, in order.

A database that does not answer holds up nothing else.
"""

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError, StoreProblem
from adjourn.wiring.controller import open_controller

T = TypeVar("T")
_PATIENCE = 2.0  # seconds for which leaving waits for what is under way


class StoreThread:
    """Runs work on one store."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._work: queue.SimpleQueue[tuple[Callable[[Controller], Any], Future[Any]] | None]
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"adjourn tui {root}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Controller], T]) -> "Future[T]":
        """Have work done with the controller of this store, after all that was submitted before."""
        future: Future[T] = Future()
        self._work.put((work, future))
        return future

    def close(self) -> None:
        """Let go of the store as soon as nothing is under way."""
        self._work.put(None)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        controller: Controller | None = None
        opened: tuple[int, int] | None = None
        while (item := self._work.get()) is not None:
            work, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if self._identity() != opened:
                    if controller:
                        controller.store.close()
                    controller = None
                if controller is None:
                    opened = self._identity()
                    if opened is None:  # opening it would make a new one
                        raise StoreProblem(f"{self.root} is gone", way_out="adjourn doctor")
                    controller = open_controller(self.root)
                    controller.runs.recover()
                future.set_result(work(controller))
            except BaseException as error:  # noqa: BLE001 -- the submitter gets it
                if isinstance(error, StoreProblem | OSError) and controller:
                    # Opened again for the next: the store may be back by then
                    with suppress(AdjournError, OSError):
                        controller.store.close()
                    controller = None
                future.set_exception(error)
        if controller:
            with suppress(AdjournError, OSError):
                controller.store.close()

    def _identity(self) -> tuple[int, int] | None:
        """Return which directory it is: one that was replaced is another store."""
        try:
            found = os.stat(self.root)
        except OSError:
            return None
        return found.st_dev, found.st_ino

"""Says, while a database lets us wait, that we do."""

import threading
import time
from collections.abc import Callable

_SOON = 1.0  # seconds without an answer
_LOOK = 0.5
_AGAIN = 30.0  # seconds before it is said once more

Say = Callable[[str], None]


class Patience:
    """Looks, in a thread of its own, whether an answer is overdue that somebody waits for inside of it."""

    def __init__(self, name: str, say: Say) -> None:
        self._name = name
        self.say = say
        self._since: float | None = None
        self._told_at = -_AGAIN
        self._is_over = threading.Event()
        threading.Thread(target=self._watch, name="patience", daemon=True).start()

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK):
            now = time.monotonic()
            since = self._since
            if since is not None and now - since >= _SOON and now - self._told_at >= _AGAIN:
                self._told_at = now
                self.say(f"{self._name} has not answered for {now - since:.0f} s: waiting for it")

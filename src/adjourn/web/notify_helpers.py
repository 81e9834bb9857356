"""The processes beside a server that send notifications and listen for what is pressed."""

import threading

from adjourn.core.text.when import stamp
from adjourn.system.machine import now
from adjourn.web.guard import write_log
from adjourn.wiring.notifications import FOLLOW, HEAR, HURRIED, NotifyProcess

_EVERY = 1.0  # seconds after which a config that changed, or a helper that ended, is noticed


class NotifyHelpers:
    """Keeps both helpers running while somebody wants to be told, as a worker with --hear does."""

    def __init__(self, root: str) -> None:
        self._helpers = [
            NotifyProcess(root, log=_log, log_format="json", flag=flag) for flag in (FOLLOW, HEAR)
        ]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="adjourn notify", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End them; what is due is still told. What is pressed now is for the next who listens."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        for helper in reversed(self._helpers):
            helper.close(within=HURRIED)

    def _watch(self) -> None:
        while not self._is_over.is_set():
            for helper in self._helpers:
                helper.start_if_needed()
            self._is_over.wait(_EVERY)


def _log(kind: str, **said: object) -> None:
    write_log({"at": stamp(now()), "event": kind, **said})

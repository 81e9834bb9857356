"""What a worker prints: a line for each thing that happens, and how it stands."""

import time
from contextlib import suppress

import msgspec

from adjourn.cli.session import Session
from adjourn.cli.terminal import StatusLine
from adjourn.controller.controller import Controller
from adjourn.core.documents import plain_json
from adjourn.core.errors import StoreProblem
from adjourn.core.text.render import prose
from adjourn.core.text.when import stamp
from adjourn.system.machine import now

_MANY = 100  # tasks that are counted; of more it says only that there are more
_BETWEEN_COUNTS = 0.25  # seconds


class WorkerLog:
    """Prints a line for each event, and on a terminal keeps one more that tells how it stands."""

    def __init__(self, session: Session, *, as_json: bool) -> None:
        self._session = session
        self._as_json = as_json
        # With --verbose, others print to the same terminal
        self.status = StatusLine(is_wanted=not (as_json or session.verbose))
        self._last = ""
        self._counted = (0, 0)
        self._count_again_at = 0.0
        self._next = "Ctrl+C drains"

    def log(self, event: str, **facts: object) -> None:
        """Print one event."""
        moment = stamp(now())
        clean = self._session.open_redactor().document(facts)
        if self._as_json:
            line = plain_json(msgspec.json.encode({"at": moment, "event": event, **clean}).decode())
        else:
            told = [f"{name}={prose(str(fact))}" for name, fact in clean.items()]
            line = " ".join([moment, event.replace("_", " "), *told])
        self._last = f"{event.replace('_', ' ')} {moment[11:19]}"
        if event == "draining":
            self._next = "Ctrl+C again kills"
        if self.status.is_there:
            self.status.say(line)
        else:
            self._session.warn(line)

    def show_status(self, controller: Controller, *, active: int, most: int, pool: str) -> None:
        """Rewrite the last line if there is something new."""
        if not self.status.is_there:
            return
        # Counting must not hold up what is to be started
        if not active or time.monotonic() >= self._count_again_at:
            self._count_again_at = time.monotonic() + _BETWEEN_COUNTS
            with suppress(StoreProblem), controller.store.read() as view:
                queued = len(view.queued(pool=pool, limit=_MANY))
                self._counted = (queued, view.count_open_asks())
        queued, asks = self._counted
        ready = f"{queued}{'+' if queued == _MANY else ''} queued"
        hint = " (adjourn inbox)" if asks else ""
        waiting = f"{asks} {'ask waits' if asks == 1 else 'asks wait'}{hint}"
        self.status.show(
            f"{active} of {most} active, {ready}, {waiting}; {self._last}  ({self._next})"
        )

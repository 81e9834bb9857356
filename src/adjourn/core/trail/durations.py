"""How long a task worked and how long it waited, as its events tell."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from adjourn.core.task import Milliseconds
from adjourn.core.text.when import span
from adjourn.core.trail.events import Event

Mode = Literal["working", "waiting", "over"]

_RUN_ENDED: dict[str, Mode] = {
    "run_waiting": "waiting",
    "run_settled": "waiting",
    "run_paused": "waiting",
    "run_lost": "waiting",
    "run_returned": "waiting",
    "run_completed": "over",
    "run_failed": "over",
    "run_canceled": "over",
}
_SWITCHES: dict[str, Mode] = {
    **_RUN_ENDED,
    "task_created": "waiting",
    "run_claimed": "working",
    "task_resumed": "waiting",
    "task_continued": "waiting",
    "task_restarted": "waiting",
    "task_queued": "waiting",
    "task_accepted": "over",
    "task_refused": "over",
    "task_canceled": "over",
    "task_failed": "over",
}
_WORTH_NAMING: Milliseconds = 1_000


class TimeSpent(msgspec.Struct, frozen=True, kw_only=True):
    """How long a task worked and waited up to a moment, and what it has done since then."""

    worked: Milliseconds = 0
    waited: Milliseconds = 0
    mode: Mode = "waiting"
    since: Milliseconds = 0
    has_paused: bool = False  # whether a run left before the task was done

    def until(self, now: Milliseconds) -> "TimeSpent":
        """Return the same at a later moment."""
        passed = max(now - self.since, 0)
        return msgspec.structs.replace(
            self,
            worked=self.worked + (passed if self.mode == "working" else 0),
            waited=self.waited + (passed if self.mode == "waiting" else 0),
            since=now,
        )


def time_spent(events: Iterable[Event]) -> TimeSpent:
    """Return how long a task worked and waited: for a person, a worker or another task.

    The time between the end of a task and its restart is neither.
    """
    spent = TimeSpent(mode="over")
    for event in events:
        mode = _SWITCHES.get(event.kind)
        if mode is not None:
            has_paused = spent.has_paused or _RUN_ENDED.get(event.kind) == "waiting"
            spent = msgspec.structs.replace(spent.until(event.at), mode=mode, has_paused=has_paused)
    return spent


def run_ends(events: Iterable[Event]) -> dict[int, Milliseconds]:
    """Return when each run of a task ended, by its number; one that runs is left out."""
    ends: dict[int, Milliseconds] = {}
    for event in events:
        number = event.facts.get("run")
        if event.kind in _RUN_ENDED and isinstance(number, int):
            ends[number] = event.at
    return ends


def time_words(spent: TimeSpent, *, now: Milliseconds) -> str:
    """Say how long a task worked, and how long it waited if that was worth naming."""
    total = spent.until(now)
    is_told = total.has_paused or total.waited >= _WORTH_NAMING
    waited = f"waited {span(total.waited)}" if is_told else ""
    worked = f"worked {span(total.worked)}" if total.worked or not waited else ""
    return ", ".join(filter(None, (worked, waited)))

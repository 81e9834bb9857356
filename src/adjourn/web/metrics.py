"""Figures for Prometheus: open asks by age, how long decisions took, runs and failures."""

import threading
from bisect import bisect_left
from collections import Counter
from contextlib import suppress

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.ports.store import View

_PAGE = 500
_AGES = ((60, "1m"), (600, "10m"), (3_600, "1h"), (28_800, "8h"), (86_400, "1d"))
_BUCKETS = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800)  # seconds
_OUTCOMES = ("completed", "failed", "waiting", "paused", "canceled", "lost")
_DECIDED = {
    "ask_approved": "approved",
    "ask_rejected": "rejected",
    "ask_answered": "answered",
    "ask_settled": "settled",
    "ask_expired": "expired",
}


class Metrics:
    """Counts what happened since the server started. It reads the trail when somebody asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._place: int | None = None
        self._runs: Counter[str] = Counter()
        self._started = 0
        self._refused = 0
        self._decided: Counter[str] = Counter()
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0

    def begin(self, controller: Controller) -> None:
        """Count from here on."""
        with controller.store.read() as view, self._lock:
            self._place = view.trail_head()[0]

    def text(self, controller: Controller) -> str:
        """Return all figures as Prometheus reads them."""
        with self._lock, controller.store.read() as view:
            self._count(view)
            ages, total = self._ages(view, now=controller.now())
            states = {
                state.value: len(view.tasks(states=(state,), limit=10_000))
                for state in (TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING)
            }
            lines = [*_gauge("adjourn_open_asks", "Open asks by age.", "age", ages)]
            lines += [*_gauge("adjourn_inbox_asks", "Open asks.", None, {"": total})]
            lines += [*_gauge("adjourn_tasks", "Tasks that are under way.", "state", states)]
            lines += self._counters()
        return "\n".join(lines) + "\n"

    def _count(self, view: View) -> None:
        place = self._place if self._place is not None else view.trail_head()[0]
        while page := view.happened(after=place, limit=_PAGE):
            for happened in page:
                kind, event = happened.event.kind, happened.event
                self._started += kind == "call_executing"
                self._refused += kind == "refused"
                if kind.startswith("run_") and kind.removeprefix("run_") in _OUTCOMES:
                    self._runs[kind.removeprefix("run_")] += 1
                if kind not in _DECIDED:
                    continue
                self._decided[_DECIDED[kind]] += 1
                with suppress(AdjournError):  # it was pruned
                    asked = view.ask(str(event.facts.get("ask"))).created_at
                    seconds = max(0, event.at - asked) / 1000
                    self._seconds += seconds
                    self._buckets[bisect_left(_BUCKETS, seconds)] += 1
            place = page[-1].place
        self._place = place

    @staticmethod
    def _ages(view: View, *, now: int) -> tuple[dict[str, int], int]:
        counts = dict.fromkeys([*(name for _, name in _AGES), "older"], 0)
        after: str | None = None
        while page := view.open_asks(limit=_PAGE, after=after):
            for ask in page:
                age = (now - ask.created_at) / 1000
                name = next((name for limit, name in _AGES if age <= limit), "older")
                counts[name] += 1
            after = page[-1].id
        return counts, sum(counts.values())

    def _counters(self) -> list[str]:
        runs = {outcome: self._runs[outcome] for outcome in _OUTCOMES}
        decided = {state: self._decided[state] for state in _DECIDED.values()}
        lines = [
            *_counter(
                "adjourn_calls_started", "Calls whose gate opened.", None, {"": self._started}
            ),
            *_counter("adjourn_runs_ended", "Runs that ended, by outcome.", "outcome", runs),
            *_counter("adjourn_asks_settled", "Asks that were settled.", "state", decided),
            *_counter("adjourn_refused", "Decisions that were refused.", None, {"": self._refused}),
            "# HELP adjourn_decision_seconds How long asks were open before they were settled.",
            "# TYPE adjourn_decision_seconds histogram",
        ]
        count = 0
        for limit, found in zip((*_BUCKETS, "+Inf"), self._buckets, strict=True):
            count += found
            lines.append(f'adjourn_decision_seconds_bucket{{le="{limit}"}} {count}')
        lines.append(f"adjourn_decision_seconds_sum {self._seconds}")
        lines.append(f"adjourn_decision_seconds_count {count}")
        return lines


def _gauge(name: str, says: str, label: str | None, values: dict[str, int]) -> list[str]:
    return _family(name, "gauge", says, label, values)


def _counter(name: str, says: str, label: str | None, values: dict[str, int]) -> list[str]:
    return _family(f"{name}_total", "counter", says, label, values)


def _family(
    name: str, kind: str, says: str, label: str | None, values: dict[str, int]
) -> list[str]:
    lines = [f"# HELP {name} {says}", f"# TYPE {name} {kind}"]
    for value, count in values.items():
        labels = f'{{{label}="{value}"}}' if label else ""
        lines.append(f"{name}{labels} {count}")
    return lines

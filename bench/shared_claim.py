"""From a decision to a claimed run on PostgreSQL with 100,000 tasks waiting, against raw SKIP LOCKED and NOTIFY."""

import gc
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psycopg
from _figures import Figure, ms, report, show, words
from _filled import waits_for_approval, waits_with
from _measure import environment, percentile, python
from _processes import PATIENCE
from _shared import PERSON, Shared, begun, load, share, shared_store

_RATIO = 3.5
_HERE = Path(__file__).parent
_REST = 0.05  # seconds in which whoever was woken falls asleep again
_WARM = 8  # rounds that do not count: statements are prepared, caches filled
# The least that a decision is: it is written down with the ask, and what it lets run is put into a
# queue.
_RAW = """
DROP TABLE IF EXISTS raw_ask, raw_queue;
CREATE TABLE raw_ask (no bigint PRIMARY KEY, state text NOT NULL, settled_by text, settled_at timestamptz);
CREATE INDEX raw_pending ON raw_ask (no) WHERE state = 'pending';
INSERT INTO raw_ask (no, state) SELECT no, 'pending' FROM generate_series(1, {count}) AS no;
CREATE TABLE raw_queue (no bigint PRIMARY KEY, state text NOT NULL);
CREATE INDEX raw_ready ON raw_queue (no) WHERE state = 'ready';
ANALYZE raw_ask
"""
_RAW_DECISION = "UPDATE raw_ask SET state = 'approved', settled_by = %s, settled_at = now() WHERE no = %s AND state = 'pending'"


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    share(parser, full=100_000, small=2_000)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    gc.disable()  # as every short command of adjourn does; it is so for both
    with shared_store(given.url) as shared:
        shared.fill(given.waiting, waits_for_approval)
        shared.say(_RAW.format(count=given.waiting))
        raw, ours, decided = _measured(shared, given.rounds)
    if given.verbose:
        parts = {"raw": raw, "adjourn": ours, "of that, the call of decide()": decided}
        rows = [
            (name, *(ms(percentile(times, part)) for part in (0.1, 0.5, 0.9)))
            for name, times in parts.items()
        ]
        show(("", "p10", "median", "p90"), rows)
    return report(
        f"Decision to claimed on PostgreSQL, {given.waiting:,} tasks waiting, {given.rounds} rounds, {load()}",
        [
            Figure(
                "median",
                ms(median(ours)),
                f"raw {ms(median(raw))}",
                median(ours) / median(raw),
                _RATIO,
            )
        ],
    )


def _measured(shared: Shared, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Return the times of raw claims, of ours, and of our decisions alone, taken in turn."""
    asks = shared.asks(rounds + _WARM, waits_with(("/bin/true",)))
    raw_ear, our_ear = Ear(shared.place / "raw.claimed"), Ear(shared.place / "machine-0.claimed")
    raw_worker = [python(), str(_HERE / "_raw_worker.py"), shared.url, str(raw_ear.path)]
    raw: list[float] = []
    ours: list[float] = []
    decided: list[float] = []
    with (
        begun(raw_worker, cwd=shared.place, env=environment()),
        shared.workers(1, script=_HERE / "_claiming_worker.py"),
        psycopg.connect(shared.url, autocommit=True) as connection,
    ):
        raw_ear.hear()  # it listens
        for number, ask in enumerate(asks, start=1):
            raw.append(_timed(lambda number=number: _decide_raw(connection, number), raw_ear)[1])  # type: ignore[misc]  # -- a default that binds
            alone, whole = _timed(lambda ask=ask: shared.approve([ask]), our_ear)  # type: ignore[misc]  # -- a default that binds
            ours.append(whole)
            decided.append(alone)
            shared.until_over([ask])
            time.sleep(_REST)
    return raw[_WARM:], ours[_WARM:], decided[_WARM:]


def _decide_raw(connection: "psycopg.Connection[tuple[object, ...]]", number: int) -> None:
    with connection.transaction():
        connection.execute(_RAW_DECISION, (PERSON.name, number))
        connection.execute("INSERT INTO raw_queue (no, state) VALUES (%s, 'ready')", (number,))
        connection.execute("SELECT pg_notify('raw', '')")


def _timed(decide: Callable[[], None], ear: "Ear") -> tuple[float, float]:
    """Return how long a decision took, and how long it took until it was claimed."""
    began = time.perf_counter()
    decide()
    decided = time.perf_counter()
    return decided - began, ear.hear() - began


class Ear:
    """A named pipe on which a worker says at which moment it had claimed something.

    The clock is the same for all processes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def hear(self) -> float:
        """Wait for the next word, and return the moment that it names."""
        assert self._poll.poll(PATIENCE * 1000), "nothing was claimed"
        return float(os.read(self._fd, 100).split()[-1])


if __name__ == "__main__":
    sys.exit(main())

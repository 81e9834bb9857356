"""10,000 decisions in one transaction on PostgreSQL, against a bare script that reads two rows and writes five for each."""

import sys
import time

import psycopg
from _figures import Figure, ms, report, words
from _filled import waits_for_approval
from _shared import PERSON, Shared, load, share, shared_store

from adjourn.core.ask import Reply, Verb

_SECONDS = 10.0
_MANY = 10_000
_FLOOR = """
DROP TABLE IF EXISTS raw_task, raw_ask, raw_queue, raw_event;
CREATE TABLE raw_task (no bigint PRIMARY KEY, state text NOT NULL);
CREATE TABLE raw_ask (no bigint PRIMARY KEY, state text NOT NULL);
CREATE TABLE raw_queue (no bigint PRIMARY KEY, state text NOT NULL);
CREATE TABLE raw_event (no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task bigint NOT NULL, body bytea NOT NULL);
INSERT INTO raw_task SELECT no, 'waiting' FROM generate_series(1, {count}) AS no;
INSERT INTO raw_ask SELECT no, 'pending' FROM generate_series(1, {count}) AS no;
"""


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    share(parser, full=_MANY, small=1_000)
    given = parser.parse_args()
    with shared_store(given.url) as shared:
        shared.fill(given.waiting, waits_for_approval)
        shared.say(_FLOOR.format(count=given.waiting))
        floor = _floor(shared, given.waiting)
        wall, cpu = _at_once(shared, given.waiting)
    return report(
        f"Decisions at once on PostgreSQL, {load()}",
        [
            Figure(
                f"{given.waiting:,} (CPU of the client {ms(cpu)})",
                ms(wall),
                ms(floor),
                wall,
                _SECONDS,
                unit=" s",
                below=True,
            )
        ],
    )


def _floor(shared: Shared, count: int) -> float:
    with psycopg.connect(shared.url) as connection, connection.cursor() as cursor:
        began = time.perf_counter()
        numbers = [
            (no,)
            for (no,) in connection.execute(
                "SELECT no FROM raw_ask JOIN raw_task USING (no) WHERE no <= %s", (count,)
            )
        ]
        cursor.executemany("UPDATE raw_ask SET state = 'approved' WHERE no = %s", numbers)
        cursor.executemany("UPDATE raw_task SET state = 'queued' WHERE no = %s", numbers)
        cursor.executemany("INSERT INTO raw_queue VALUES (%s, 'ready')", numbers)
        cursor.executemany(
            "INSERT INTO raw_event (task, body) VALUES (%s, 'ask_approved')", numbers
        )
        cursor.executemany("INSERT INTO raw_event (task, body) VALUES (%s, 'task_queued')", numbers)
        connection.commit()
        return time.perf_counter() - began


def _at_once(shared: Shared, count: int) -> tuple[float, float]:
    """Return the seconds that it took, and how many of them this process worked."""
    with shared.controller.store.read() as view:
        replies = [Reply(ask_id=ask.id, verb=Verb.APPROVE) for ask in view.open_asks(limit=count)]
    assert len(replies) == count
    began, worked = time.perf_counter(), time.process_time()
    settled = shared.controller.decisions.decide(replies, by=PERSON)
    assert len(settled) == count
    return time.perf_counter() - began, time.process_time() - worked


if __name__ == "__main__":
    sys.exit(main())

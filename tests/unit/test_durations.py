"""How long a task worked and waited, as its events tell."""

import pytest

from adjourn.core.trail.durations import run_ends, time_spent, time_words
from adjourn.core.trail.events import Event

HOUR = 3_600_000


def events(*told: tuple[int, str, int | None]) -> list[Event]:
    return [
        Event(task_id="t", kind=kind, by="adjourn", at=at, facts={"run": run} if run else {})
        for at, kind, run in told
    ]


ASKED = ((0, "task_created", None), (100, "run_claimed", 1), (2_100, "run_waiting", 1))
DONE = (*ASKED, (HOUR, "task_queued", None), (HOUR, "run_claimed", 2))


@pytest.mark.parametrize(
    ("told", "now", "words"),
    (
        ((), 5_000, "worked 0.0s"),
        (((0, "task_created", None),), 500, "worked 0.0s"),
        (((0, "task_created", None),), 5_000, "waited 5.0s"),
        (ASKED[:2], 12_100, "worked 12s"),
        (ASKED, HOUR, "worked 2.0s, waited 59m 58s"),
        ((*DONE, (HOUR + 10_000, "run_completed", 2)), 9 * HOUR, "worked 12s, waited 59m 58s"),
        # What lies between its end and its restart is neither
        (
            (
                *ASKED[:2],
                (1_100, "run_failed", 1),
                (HOUR, "task_restarted", None),
                (HOUR, "run_claimed", 2),
                (HOUR + 1_000, "run_completed", 2),
            ),
            9 * HOUR,
            "worked 2.0s",
        ),
        ((*ASKED, (HOUR, "task_canceled", None)), 9 * HOUR, "worked 2.0s, waited 59m 58s"),
    ),
)
def test_work_and_waiting_are_counted_apart(
    told: tuple[tuple[int, str, int | None], ...], now: int, words: str
) -> None:
    assert time_words(time_spent(events(*told)), now=now) == words


def test_a_run_ends_when_it_left_whatever_happens_to_its_record_later() -> None:
    later = (*DONE, (HOUR + 5, "run_completed", 2), (2 * HOUR, "task_restarted", None))
    assert run_ends(events(*later)) == {1: 2_100, 2: HOUR + 5}

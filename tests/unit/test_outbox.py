"""How a notifier goes through the trail.

Nothing is lost, nothing overtakes, and nobody is pestered.
"""

from adjourn.core.outbox import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE,
    Outbox,
    is_ahead,
    pause_after,
)
from adjourn.testing.values import NOON


def failed(box: Outbox, place: int, *, task: str = "a", at: int = NOON) -> Outbox:
    return box.failed(place, task_id=task, now=at, why="it answered 500")


def test_what_was_taken_is_left_behind() -> None:
    assert Outbox(cursor=3).delivered(7) == Outbox(cursor=7, count_delivered=1)


def test_what_was_not_taken_is_tried_again_and_later_each_time() -> None:
    box = failed(Outbox(cursor=0), 1)
    assert box.due(now=NOON + FIRST_PAUSE - 1) is None
    due = box.due(now=NOON + FIRST_PAUSE)
    assert due is not None
    assert due.place == 1
    again = failed(box, 1, at=NOON + FIRST_PAUSE)
    assert again.due(now=NOON + 3 * FIRST_PAUSE - 1) is None
    assert again.due(now=NOON + 3 * FIRST_PAUSE) is not None


def test_a_pause_grows_from_seconds_to_an_hour_and_no_further() -> None:
    assert [pause_after(tries) // 1000 for tries in (1, 2, 3, 10, 11, 500)] == [
        5,
        10,
        20,
        2560,
        3600,
        3600,
    ]


def test_one_event_that_nobody_takes_does_not_keep_back_other_tasks() -> None:
    box = failed(Outbox(cursor=0), 1, task="a").delivered(2)
    assert box.not_before == 0
    assert not box.holds_back("b")
    assert box.cursor == 2


def test_no_event_overtakes_an_earlier_one_of_its_task() -> None:
    box = failed(Outbox(cursor=0), 1, task="a")
    assert box.holds_back("a")
    box = box.behind(2, task_id="a")
    due = box.due(now=NOON + LONGEST_PAUSE)
    assert due is not None
    assert due.place == 1
    after = box.delivered(1).due(now=NOON)
    assert after is not None
    assert after.place == 2


def test_a_receiver_that_takes_nothing_is_left_alone() -> None:
    box = Outbox(cursor=0)
    for place, task in enumerate("abc", start=1):
        box = failed(box, place, task=task)
    assert box.not_before == NOON + FIRST_PAUSE
    assert box.next_at(now=NOON) == NOON + FIRST_PAUSE
    assert box.delivered(1).not_before == 0


def test_after_a_day_an_event_is_given_up_and_that_is_recorded() -> None:
    box = failed(failed(Outbox(cursor=0), 1), 1, at=NOON + PATIENCE)
    assert box.parked == ()
    assert box.count_given_up == 1
    assert [(event.place, event.why) for event in box.given_up] == [(1, "it answered 500")]


def test_when_nothing_is_parked_only_something_new_is_a_reason_to_look() -> None:
    assert Outbox(cursor=5).next_at(now=NOON) is None
    assert Outbox(cursor=5, not_before=NOON - 1).next_at(now=NOON) is None


def test_a_person_can_have_everything_tried_at_once() -> None:
    box = failed(Outbox(cursor=0), 1).without_pauses()
    assert box.due(now=NOON) is not None


def test_a_clock_that_is_set_back_makes_no_pause_longer() -> None:
    """Nobody waits a year for the next try."""
    box = Outbox(cursor=0)
    for place in (1, 2, 3):
        box = failed(box, place, task=str(place))
    assert box.next_at(now=NOON) == NOON + FIRST_PAUSE
    for back in (2 * LONGEST_PAUSE, 365 * 24 * LONGEST_PAUSE):
        assert box.due(now=NOON - back) is not None
        assert not is_ahead(box.not_before, now=NOON - back)
        assert box.next_at(now=NOON - back) == 0

"""The audit trail: whatever is changed afterwards is found."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjourn.core.trail.events import (
    GENESIS,
    Event,
    Sealed,
    first_broken,
    forgotten,
    link_after,
    seal_after,
)
from adjourn.testing.values import NOON, an_event

events = st.builds(
    Event,
    task_id=st.sampled_from(["a", "b", "c"]),
    kind=st.sampled_from(["task_created", "ask_opened", "ask_approved"]),
    by=st.sampled_from(["uid:0", "uid:1000", "adjourn"]),
    at=st.integers(NOON, NOON + 5),
    facts=st.dictionaries(
        st.sampled_from(["call", "digest"]),
        st.integers(0, 3) | st.text("xy", max_size=2),
        max_size=2,
    ),
)
stories = st.lists(events, min_size=1, max_size=12)
indexes = st.integers(0, 11)


def trail_of(story: list[Event]) -> list[Sealed]:
    """Seal a story as a store does."""
    heads: dict[str, bytes] = {}
    trail: list[Sealed] = []
    for event in story:
        link = heads[event.task_id] = link_after(heads.get(event.task_id, GENESIS), event)
        trail.append(
            Sealed(event=event, seal=seal_after(trail[-1].seal if trail else GENESIS, link))
        )
    return trail


@given(stories)
def test_a_trail_that_nobody_touched_closes(story: list[Event]) -> None:
    assert first_broken(trail_of(story)) is None


def test_an_empty_trail_closes() -> None:
    assert first_broken([]) is None


@given(stories, indexes, events)
def test_an_edited_event_is_found_where_it_stands(
    story: list[Event], index: int, other: Event
) -> None:
    index %= len(story)
    assume(story[index] != other)
    trail = trail_of(story)
    trail[index] = msgspec.structs.replace(trail[index], event=other)
    assert first_broken(trail) == index


@given(stories, indexes)
def test_a_removed_event_is_found_at_the_gap(story: list[Event], index: int) -> None:
    """Only a cut at the very end leaves a shorter trail that closes.

    The heads of the tasks tell that.
    """
    assume(len(story) > 1)
    index %= len(story) - 1
    trail = trail_of(story)
    del trail[index]
    assert first_broken(trail) == index


@given(stories, indexes, indexes)
def test_two_swapped_events_are_found(story: list[Event], one: int, other: int) -> None:
    one, other = sorted((one % len(story), other % len(story)))
    trail = trail_of(story)
    assume(one != other)
    trail[one], trail[other] = trail[other], trail[one]
    assert first_broken(trail) == one


@given(stories, indexes, events)
def test_a_slipped_in_event_is_found(story: list[Event], index: int, event: Event) -> None:
    index %= len(story)
    trail = trail_of(story)
    trail.insert(index, Sealed(event=event, seal=trail[index].seal))
    assert first_broken(trail) in {index, index + 1}


@given(stories, indexes, st.binary(min_size=32, max_size=32))
def test_a_changed_seal_is_found(story: list[Event], index: int, seal: bytes) -> None:
    index %= len(story)
    trail = trail_of(story)
    assume(trail[index].seal != seal)
    trail[index] = msgspec.structs.replace(trail[index], seal=seal)
    assert first_broken(trail) == index


@given(stories, st.lists(st.sampled_from(["a", "b", "c"]), max_size=3))
def test_forgetting_tasks_keeps_the_chain_closed_and_leaves_no_word_of_them(
    story: list[Event], gone: list[str]
) -> None:
    trail = trail_of(story)
    for task_id in gone:
        trail = forgotten(trail, task_id)
    assert first_broken(trail) is None
    assert [row.event for row in trail] == [
        None if event.task_id in gone else event for event in story
    ]
    assert [row.seal for row in trail] == [row.seal for row in trail_of(story)]


@given(stories, indexes, st.binary(min_size=32, max_size=32))
def test_a_changed_link_of_a_forgotten_event_is_found(
    story: list[Event], index: int, link: bytes
) -> None:
    index %= len(story)
    trail = forgotten(trail_of(story), story[index].task_id)
    assume(trail[index].link != link)
    trail[index] = msgspec.structs.replace(trail[index], link=link)
    assert first_broken(trail) == index


@given(stories)
def test_what_remains_after_forgetting_is_still_guarded(story: list[Event]) -> None:
    trail = forgotten(trail_of(story), "a")
    kept = [index for index, row in enumerate(trail) if row.event]
    assume(kept)
    trail[kept[-1]] = msgspec.structs.replace(trail[kept[-1]], event=an_event("b", "made_up"))
    assert first_broken(trail) == kept[-1]


@given(events, events)
def test_two_events_have_one_link_only_if_they_are_one(one: Event, other: Event) -> None:
    assert (link_after(GENESIS, one) == link_after(GENESIS, other)) == (one == other)


def test_every_event_has_a_seal_of_its_own_even_if_it_says_the_same() -> None:
    seals = [row.seal for row in trail_of([an_event()] * 4)]
    assert all(one != other for one, other in pairwise(seals))


@pytest.mark.parametrize("facts", [{}, {"call": 1}, {"digest": None}, {"call": "1"}])
def test_facts_are_part_of_the_link(facts: dict[str, str | int | None]) -> None:
    others: list[dict[str, str | int | None]] = [
        {"call": 2},
        {"digest": "x"},
        {"call": 1, "digest": "x"},
    ]
    assert all(
        link_after(GENESIS, an_event(facts=facts)) != link_after(GENESIS, an_event(facts=other))
        for other in others
    )

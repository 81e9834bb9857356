"""Times and spans, also when the clock jumps."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.text.when import ago, span, stamp
from adjourn.testing.values import A_DAY, NOON

SPANS = {
    0: "0.0s",
    400: "0.4s",
    1_000: "1.0s",
    9_949: "9.9s",
    10_000: "10s",
    59_999: "59s",
    60_000: "1m",
    125_000: "2m 5s",
    3_600_000: "1h",
    3_661_000: "1h 1m",
    A_DAY - 1: "23h 59m",
    A_DAY: "1d",
    3 * A_DAY + 4 * 3_600_000 + 59_000: "3d 4h",
    400 * A_DAY: "400d",
    -1: "0.0s",
    -A_DAY: "0.0s",
}
moments = st.integers(0, 4_102_444_800_000)
jumps = st.integers(-20 * 365 * A_DAY, 20 * 365 * A_DAY)


@pytest.mark.parametrize(("milliseconds", "words"), SPANS.items())
def test_a_span_has_its_two_largest_units(milliseconds: int, words: str) -> None:
    assert span(milliseconds) == words


@given(jumps)
def test_a_span_is_never_negative_or_empty(milliseconds: int) -> None:
    assert span(milliseconds)
    assert "-" not in span(milliseconds)


@given(moments, st.integers(1_000, 20 * 365 * A_DAY))
def test_what_happened_is_told_by_its_distance(moment: int, later: int) -> None:
    """A-R49: whoever looks at a paused task sees how long ago that was."""
    assert ago(moment, now=moment + later) == f"{span(later)} ago"


@given(moments, st.integers(-20 * 365 * A_DAY, 999))
def test_a_clock_that_went_back_makes_it_now(moment: int, earlier: int) -> None:
    assert ago(moment, now=moment + earlier) == "now"


@given(moments)
def test_a_stamp_is_iso_8601_in_utc_to_the_millisecond(moment: int) -> None:
    """A-R49, D-R38"""
    words = stamp(moment)
    assert words.endswith("Z")
    assert len(words) == len("2023-11-14T22:13:20.000Z")
    assert round(datetime.fromisoformat(words).timestamp() * 1000) == moment


@given(moments, moments)
def test_stamps_sort_as_the_moments_do(one: int, other: int) -> None:
    assert (stamp(one) < stamp(other)) == (one < other)


def test_noon_is_noon() -> None:
    assert stamp(NOON) == datetime.fromtimestamp(NOON / 1000, UTC).strftime(
        "%Y-%m-%dT%H:%M:%S.000Z"
    )

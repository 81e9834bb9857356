"""What a review says."""

import pytest

from adjourn.core.diffstat import Diffstat, FileChange, diffstat_lines
from adjourn.core.review import (
    ChangesRequested,
    Review,
    TurnedDown,
    WorkApproved,
    feedback_of,
    review_of,
)

REVIEWS: dict[str, Review] = {
    "approve": WorkApproved(stops=False),
    " approve ": WorkApproved(stops=False),
    "approve and stop": WorkApproved(stops=True),
    "request changes: make it blue": ChangesRequested("make it blue"),
    "request changes: a: b": ChangesRequested("a: b"),
    "reject": TurnedDown(None),
    "reject: too slow": TurnedDown("too slow"),
}


@pytest.mark.parametrize("text", REVIEWS)
def test_a_review_is_one_of_four(text: str) -> None:
    assert review_of(text) == REVIEWS[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "aprove",
        "Approve",
        "approve it",
        "approve: but",
        "approve and stop: no",
        "request changes",
        "request changes: ",
    ],
)
def test_what_is_none_of_them_is_no_review(text: str) -> None:
    assert review_of(text) is None


def test_only_a_wish_for_changes_has_feedback() -> None:
    assert feedback_of("request changes: more") == "more"
    assert [feedback_of(text) for text in ("approve", "reject: more", None)] == [None, None, None]


def test_a_diffstat_is_aligned_and_says_all_of_it_last() -> None:
    stat = Diffstat(
        files=(
            FileChange(path="a.py", what="changed", lines_added=3, lines_removed=1),
            FileChange(path="long/name.py", what="added", lines_added=400, lines_removed=0),
            FileChange(path="x.bin", what="removed"),
        )
    )
    assert list(diffstat_lines(stat)) == [
        "a.py         |     4 +-",
        f"long/name.py |   400 {'+' * 24}  added",
        "x.bin        | not text  removed",
        "3 files changed, 403 lines added, 1 line removed",
    ]


def test_a_diffstat_shows_no_more_than_so_many_files_and_nothing_that_hides() -> None:
    files = tuple(
        FileChange(path=f"f{number:03}\u202e", what="added", lines_added=1, lines_removed=0)
        for number in range(60)
    )
    lines = list(diffstat_lines(Diffstat(files=files, is_whole=False)))
    assert lines[50] == "… 10 more files"
    assert lines[51].endswith("; there is more than a short look covers")
    assert "\u202e" not in "".join(lines)


def test_where_nothing_changed_that_is_said() -> None:
    assert list(diffstat_lines(Diffstat())) == ["no file changed"]

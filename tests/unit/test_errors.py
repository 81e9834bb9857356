"""One tree of errors: a code for machines, an exit code for scripts, a sentence and a way out for people."""

from collections.abc import Iterator

import pytest

from adjourn.core import errors, exits
from adjourn.core.documents import failure
from adjourn.core.errors import AdjournError


def tree(kind: type[AdjournError] = AdjournError) -> Iterator[type[AdjournError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


# Not those of modules that happen to be loaded
OURS = [kind for kind in tree() if kind.__module__ == errors.__name__]
EXIT_CODES = {
    "AdjournError": 1,
    "BadPolicy": 2,
    "BadPlan": 2,
    "Misuse": 2,
    "NotFound": 3,
    "Ambiguous": 3,
    "Conflict": 4,
    "AlreadySettled": 4,
    "MoveRefused": 4,
    "StaleCheckpoint": 4,
    "AlreadyDone": 4,
    "Outdated": 4,
    "WorkspaceBusy": 4,
    "NothingRecorded": 4,
    "NotAllowed": 5,
    "NotInsideARun": 2,
    "Rejected": 1,
    "EditIgnored": 1,
    "CannotResume": 6,
    "NotStarted": 1,
    "UnreadableRow": 1,
    "StoreProblem": 1,
    "StoreLost": 1,
    "StoreRefused": 5,
    "StoreNotBound": 5,
    "StoreOlder": 5,
    "StoreReadOnly": 1,
    "StoreDamaged": 1,
}


def test_every_error_has_its_exit_code() -> None:
    """A-R21 to A-R23: 0 and 10 are never the exit code of an error."""
    assert {kind.__name__: kind.exit_code for kind in OURS} == EXIT_CODES


def test_no_two_errors_share_a_code() -> None:
    codes = [kind.code for kind in OURS]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_an_error_is_one_object_for_machines(kind: type[AdjournError]) -> None:
    """A-R22, A-R31: a failure is JSON too, with code, sentence and way out."""
    told = failure(kind("it broke", way_out="adjourn inbox"))
    assert (told.schema_version, told.outcome) == (1, "failed")
    assert (told.error.code, told.error.message, told.error.way_out) == (
        kind.code,
        "it broke",
        "adjourn inbox",
    )
    assert str(kind("it broke")) == "it broke"
    assert failure(kind("it broke")).error.way_out is None


def test_the_tree_is_drawn_where_it_grows() -> None:
    """The drawing at the top of the module names every error with its exit code."""
    drawing = (errors.__doc__ or "").splitlines()
    drawn = {
        words[0]: words[1]
        for line in drawing
        if len(words := line.lstrip(" │├└─").split()) > 1 and words[1].isdigit()
    }
    told = {name: str(code) for name, code in EXIT_CODES.items() if name != "AdjournError"}
    assert drawn == told


def test_the_exit_codes_are_these() -> None:
    """A-R21 to A-R23: 0 completed, 1 failed, 10 paused."""
    told = {
        0: "completed",
        1: "failed",
        2: "usage error",
        3: "not found, or not unique",
        4: "conflict: already decided, not paused, or superseded",
        5: "not allowed",
        6: "cannot be resumed; use restart",
        10: "paused: a person is needed",
    }
    assert told == exits.MEANINGS

"""Every requirement of seed D is shown by a test that names it."""

import re
from itertools import chain

import pytest

from tests.house.project import ROOT

ALL = set(range(1, 67))
WITH_THE_TUI = {2, 3, 4, 29, 50, 56, 66}
OWED_BY_CLAUDE_AND_CODEX: set[int] = {23, 58, 62}
"""What only those two runners can show. Whoever shows one takes it out: an entry that has its test fails, too."""

_NAMED = re.compile(r"D-R(\d+)(?: to D-R(\d+))?")


def named() -> set[int]:
    """Return the numbers that tests name, alone or as in `D-R8 to D-R11`."""
    files = [path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name != "test_requirements.py"]
    hits = chain.from_iterable(_NAMED.finditer(text) for text in files)
    return {number for hit in hits for number in range(int(hit[1]), int(hit[2] or hit[1]) + 1)}


def test_every_requirement_of_seed_d_has_a_test_that_names_it() -> None:
    missing = ALL - named() - WITH_THE_TUI - OWED_BY_CLAUDE_AND_CODEX
    assert sorted(missing) == []


def test_no_test_names_a_requirement_that_is_not_there() -> None:
    assert sorted(named() - ALL) == []


@pytest.mark.parametrize("number", sorted(OWED_BY_CLAUDE_AND_CODEX))
def test_what_is_shown_is_owed_no_more(number: int) -> None:
    assert number not in named(), f"D-R{number} has its test: take it out of OWED_BY_CLAUDE_AND_CODEX"

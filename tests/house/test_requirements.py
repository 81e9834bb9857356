"""Each requirement of the designs has a test that names it."""

import re
from itertools import chain

import pytest

from tests.house.project import PACKAGE, ROOT

LAST = {"A": 91, "D": 66}
# The MCP surface and the terminal surface come later, and bring these with them.
LATER = {"A": {*range(63, 69), 72, 77}, "D": {2, 3, 4, 29, 50, 56, 66}}


def named(design: str) -> set[int]:
    """Return the numbers of a design that tests name, alone or as in `D-R8 to D-R11`."""
    pattern = re.compile(rf"\b{design}-R(\d+)\b(?: to {design}-R(\d+)\b)?")
    files = [
        path.read_text()
        for place in (ROOT / "tests", PACKAGE / "testing")
        for path in place.rglob("*.py")
        if path.name != "test_requirements.py"
    ]
    hits = chain.from_iterable(pattern.finditer(text) for text in files)
    return {number for hit in hits for number in range(int(hit[1]), int(hit[2] or hit[1]) + 1)}


@pytest.mark.parametrize("design", sorted(LAST))
def test_every_requirement_is_named_by_a_test(design: str) -> None:
    assert sorted(set(range(1, LAST[design] + 1)) - LATER[design] - named(design)) == []


@pytest.mark.parametrize("design", sorted(LAST))
def test_no_test_names_a_requirement_that_is_not_there(design: str) -> None:
    assert sorted(named(design) - set(range(1, LAST[design] + 1))) == []

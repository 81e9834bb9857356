"""Every requirement of the RFC has a test that names it."""

import re

from tests.house.project import ROOT

LAST = 91
# The MCP surface and the terminal surface come later, and bring these with them.
LATER = {*range(63, 69), 72, 77}


def test_every_requirement_of_the_rfc_is_named_by_a_test() -> None:
    named = {
        int(number)
        for path in (ROOT / "tests").rglob("*.py")
        for line in path.read_text().splitlines()
        for number in re.findall(r"\bA-R(\d+)\b", line)
    }
    assert sorted(set(range(1, LAST + 1)) - LATER - named) == []

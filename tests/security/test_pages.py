"""What docs/security.md claims is shown by a test that it names."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "security.md"
CLAIM = "what comes of it"
SHOWN_BY = "shown by"


def tables(text: str) -> list[list[list[str]]]:
    """Return the tables of a page, each as rows of cells, the headings first."""
    found: list[list[list[str]]] = []
    is_inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        if not is_inside:
            found.append([])
        is_inside = True
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            found[-1].append(cells)
    return found


def names_of_all_tests() -> set[str]:
    names: set[str] = set()
    for path in HERE.parent.rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        names |= {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
    return names


CLAIMS = [
    (table[0], row) for table in tables(PAGE.read_text()) if CLAIM in table[0] for row in table[1:]
]
KNOWN = names_of_all_tests()


def test_the_page_has_rows_that_claim_something() -> None:
    assert len(CLAIMS) > 20


@pytest.mark.parametrize(("head", "row"), CLAIMS, ids=[row[0][:60] for _, row in CLAIMS])
def test_a_row_names_tests_that_are_there(head: list[str], row: list[str]) -> None:
    assert head[-1] == SHOWN_BY, f"the table {head} needs a last column `{SHOWN_BY}`"
    named = re.findall(r"`(test_\w+)`", row[-1])
    assert named, f"name the test that shows it: {row[0]}"
    assert sorted(set(named) - KNOWN) == []

"""The comparison has no figure that a bench did not print."""

import re

from tests.docs.page import DOCS, ROOT

FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)? (?:ms|s|bytes|MB|%)")


def test_every_figure_stands_in_the_table_of_the_benches() -> None:
    page = (DOCS / "comparison.md").read_text().partition("## What waiting")[2]
    figures = set(FIGURE.findall(page)) - {"5 s"}  # how often the poll looks
    assert len(figures) > 10
    measured = (ROOT / "bench" / "README.md").read_text().replace(" B ", " bytes ")
    assert {figure for figure in figures if figure not in measured} == set()

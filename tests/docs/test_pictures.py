"""The pictures of the docs show what the program prints today."""

import re

import pytest

from docs.draw import PICTURES, SCENES, draw, played, shown_in
from tests.programs import program

LOOSE = (
    # First: eight digits of a digest may look like an id
    (re.compile(r"\bsha256([ :])[0-9a-f]{8}\b"), r"sha256\1<digest>"),
    (re.compile(r"\b(?:[a-z2-7]{8}|[a-z2-7]{26})\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8,}\b"), "<digest>"),
    (re.compile(r"\b\d+(?:\.\d+)?s\b"), "<span>"),
    (re.compile(r"uid:\d+"), "uid:<number>"),
    (re.compile(r"now|<span> ago"), "<ago>"),
)


def loosened(row: str) -> str:
    for pattern, word in LOOSE:
        row = pattern.sub(word, row)
    return row


def ordered(picture: str) -> list[str]:
    """Return the rows of a picture; neighbours from stdout and stderr come in any order."""
    rows: list[str] = []
    streams: list[str] = []
    for row in [*shown_in(picture), ""]:
        if row.startswith(("out │", "err │", "more │")):
            streams.append(loosened(row))
            continue
        rows += [*sorted(streams), loosened(row)]
        streams = []
    return rows


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_is_what_a_terminal_shows(name: str) -> None:
    if name == "claude.svg":
        program("claude")
    kept = (PICTURES / name).read_text()
    with played(name) as rows:
        drawn = draw(name, rows)
    assert ordered(drawn) == ordered(kept)


def test_every_picture_has_a_scene_and_every_scene_a_picture() -> None:
    assert {path.name for path in PICTURES.glob("*.svg")} == set(SCENES)

"""The page of symptoms quotes what the program really says, and its cures are commands that exist."""

import re

import pytest

from tests.docs.page import DOCS, blocks
from tests.house.sentences import A_COMMAND, ALL, is_there

PAGE = DOCS / "symptoms.md"
SYMPTOMS = re.findall(r"^### `(.+)`$", PAGE.read_text(), flags=re.MULTILINE)
SAID = [text for _, text in ALL]


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_the_program_says_what_the_page_quotes(symptom: str) -> None:
    """Every piece between two values stands in one sentence of the source, in this order."""
    pieces = [re.escape(piece.strip()) for piece in symptom.split("…") if piece.strip(" :;")]
    wanted = re.compile(".*".join(pieces), re.DOTALL)
    assert any(wanted.search(text) for text in SAID), f"nothing says: {symptom}"


def test_every_cure_is_a_command_that_exists() -> None:
    cures = [line for block in blocks(PAGE) for line in block.lines]
    assert len(cures) >= len(SYMPTOMS)
    wrong = []
    for line in cures:
        hit = A_COMMAND.match(line)
        if not hit or not is_there(*hit.groups()):
            wrong.append(line)
    assert wrong == []

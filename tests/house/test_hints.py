"""What a hint names is there: a verb with these options, never a page that an installation lacks."""

import re

import pytest

from tests.house.sentences import A_COMMAND, ALL, is_there

A_PAGE = re.compile(r"\bdocs/[\w-]+|\b[\w/-]+/[\w-]+\.md\b")


def test_no_sentence_names_a_page_that_an_installation_lacks() -> None:
    """The wheel has no docs."""
    assert [f"{place}: {text}" for place, text in ALL if A_PAGE.search(text)] == []


def test_every_verb_and_option_that_a_sentence_names_is_there() -> None:
    wrong = [
        f"{place}: {text}"
        for place, text in ALL
        for hit in A_COMMAND.finditer(text)
        if not is_there(*hit.groups())
    ]
    assert wrong == []


@pytest.mark.parametrize("words", ["execute --anything", "store missing"])
def test_a_command_that_is_not_there_is_found(words: str) -> None:
    hit = A_COMMAND.search(f"adjourn {words}")
    assert hit
    assert not is_there(*hit.groups())

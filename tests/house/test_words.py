"""People read plain English: the words that docs/style.md replaces do not come back."""

import re
from pathlib import Path

import pytest

from tests.house.project import ROOT, numbered_lines, project_files

READ_BY_PEOPLE = ("src", "docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "dev")
ENDINGS = {".py", ".md", ".sql", ".toml", ".sh", ".yml", ""}
# The guide has to name the words that it replaces
EXCEPTIONS = {"docs/style.md"}
PHRASES = (
    r"\banew\b",
    r"\bwhoever\b",
    r"\bsay it again\b",
    r"\bsaid (so|again)\b",
    r"(?-i:\bis none\b)",
    r"(?-i:\b[Tt]here is none\b)",
    r"\bof which nobody\b",
    r"\bha(ve|s) somebody told\b",
    r"\bhave it (said|told|done)\b",
    r"\bc[ao]mes? to nothing\b",
    r"\bput right\b",
    r"\bin good order\b",
    r"\bof the kind\b",
    r"\bsees? to (it)?\b",
    r"\bwords of (a|the|its) command\b",
    r"\b(told|tells?|hears?) of\b",
    r"\bmakes? of (a|the) (command|call)\b",
    r"\bstands? and falls?\b",
    r"\bin one breath\b",
    r"\bfor want of\b",
    r"\bthat lies? there\b",
    r"\bof late\b",
    r"\bby chance\b",
    r"\bsays? something (else|that means nothing)\b",
    r"\bwhat becomes? of\b",
    r"\bbecame of\b",
    r"\blooks? whether\b",
    r"\bas it comes\b",
)
DIALECT = re.compile("|".join(PHRASES), re.IGNORECASE)


def is_read_by_people(path: Path) -> bool:
    """Return whether a file has text that the guide is about."""
    name = path.relative_to(ROOT)
    return (
        name.parts[0] in READ_BY_PEOPLE and path.suffix in ENDINGS and str(name) not in EXCEPTIONS
    )


def test_no_sentence_uses_a_word_that_the_guide_replaces() -> None:
    found = [
        f"{place}: {hit[0]!r} in: {line.strip()[:120]}"
        for path in project_files()
        if is_read_by_people(path)
        for place, line in numbered_lines(path)
        if (hit := DIALECT.search(line))
    ]
    assert not found, "docs/style.md has plainer words:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "sentence",
    (
        "Whoever decides is told of it.",
        "free some space and say it again",
        "There is none yet.",
        "Say what became of the call.",
    ),
)
def test_the_dialect_is_found(sentence: str) -> None:
    assert DIALECT.search(sentence)


@pytest.mark.parametrize(
    "sentence",
    (
        "None is a value: the default is None.",
        "Run the command again.",
        "The trail records every decision.",
    ),
)
def test_plain_words_pass(sentence: str) -> None:
    assert not DIALECT.search(sentence)

"""The project's files stay free of what belongs to one machine, and silence no tool without a reason."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import ROOT, numbered_lines, project_files

# Written so that no pattern matches itself.
REGISTRY_HOST = re.compile(
    r"\b(?:pypi[.]org|pythonhosted[.]org|npmjs[.](?:org|com)|yarnpkg[.]com|crates[.]io|docker[.]io|ghcr[.]io|quay[.]io|deb[.]debian[.]org)\b"
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root)/|(?<![\w.])/home/[\w.-]+|/Users/[\w.-]+")

CODE = r"[A-Z]+[0-9]+"
SILENCERS = [
    re.compile(rf"#\s*(?:ruff:\s*)?noqa(?P<codes>:\s*{CODE}(?:[,\s]+{CODE})*)?", re.IGNORECASE),
    re.compile(r"#\s*type:\s*ignore(?P<codes>\[[\w, -]+\])?"),
    re.compile(r"#\s*pyright:\s*ignore(?P<codes>\[[\w, -]+\])?"),
]
A_REASON = re.compile(r"\w+\W+\w+")


@pytest.mark.parametrize(
    "forbidden", [REGISTRY_HOST, MACHINE_PATH], ids=["registry host", "path of one machine"]
)
def test_no_file_names_a_registry_host_or_a_path_of_one_machine(forbidden: re.Pattern[str]) -> None:
    found = [
        f"{place}: {hit[0]}"
        for path in project_files()
        for place, line in numbered_lines(path)
        if (hit := forbidden.search(line))
    ]
    assert not found, "\n".join(found)


def test_whoever_silences_a_tool_names_the_code_and_the_reason() -> None:
    found = [
        f"{place}: {comment}"
        for path in project_files()
        for place, comment in comments(path)
        if not is_reasoned(comment)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "comment",
    (
        "# an ordinary remark",
        "# noqa: S603 the argv is the user's own",
        "# noqa: S603, S607  # the user's own argv",
        "# type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a bug in the stubs",
    ),
)
def test_a_code_with_a_reason_passes(comment: str) -> None:
    assert is_reasoned(comment)


@pytest.mark.parametrize(
    "comment",
    (
        "# noqa",
        "# noqa: S603",
        "# noqa because I say so",
        "# type: ignore",
        "# type: ignore  # the stubs are wrong",
        "# pyright: ignore[reportArgumentType]",
        "# type: ignore[arg-type]  # pyright: ignore[reportArgumentType]",
    ),
)
def test_a_silencer_without_code_or_reason_is_found(comment: str) -> None:
    assert not is_reasoned(comment)


def is_reasoned(comment: str) -> bool:
    """Tell whether a comment silences nothing, or says which rule and why."""
    hits = [hit for silencer in SILENCERS for hit in silencer.finditer(comment)]
    for hit in hits:
        comment = comment.replace(hit[0], "")
    return not hits or (all(hit["codes"] for hit in hits) and bool(A_REASON.search(comment)))


def comments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the comments of a Python file, each with the place to point at."""
    if path.suffix != ".py" and path != ROOT / "dev":
        return
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield f"{path.relative_to(ROOT)}:{token.start[0]}", token.string

"""A command as one line, wherever that line cannot mislead."""

import shlex

import pytest

from adjourn.views.pasted import pasted_line


@pytest.mark.parametrize(
    "argv",
    (
        ("terraform", "apply", "-auto-approve"),
        ("sh", "-c", 'echo "hi there" && rm -rf build'),
        ("git", "commit", "-m", "it's done"),
        ("./deploy.sh", "--token=$(cat token)"),
    ),
)
def test_a_plain_command_is_one_line_that_a_shell_reads_back(argv: tuple[str, ...]) -> None:
    shown = pasted_line(argv)
    assert shown is not None
    assert tuple(shlex.split(shown.removeprefix("$ "))) == argv


@pytest.mark.parametrize(
    "argv",
    (
        ("rm", "build\u200b"),
        ("rm", "b\u0443ild"),  # a Cyrillic letter
        ("rm", "\x1b[2K"),
        ("echo", "one\ntwo"),
        ("rm", " build"),
        ("rm", "a  b"),
        ("rm", ""),
        ("rm", "x" * 200),
        ("echo", "\u2039redacted 7 bytes\u203a"),
    ),
)
def test_what_could_mislead_is_shown_word_by_word(argv: tuple[str, ...]) -> None:
    assert pasted_line(argv) is None

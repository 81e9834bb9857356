"""Whatever words a call or a policy file brings, what is said of them is safe to show."""

from pathlib import Path

import pytest

from adjourn.core.call import Command, arguments_of, command_body
from adjourn.core.documents import encoded
from adjourn.core.policy.judge import allowed_call
from adjourn.core.policy.policy import Allowance
from adjourn.core.policy.policy_file import read_policy
from adjourn.core.text.render import prose
from adjourn.views.allowance import what_it_matches
from adjourn.views.block import to_text
from adjourn.views.policy import explanation_blocks, explanation_document
from adjourn.wiring.policies import explained
from tests.hostile import HOSTILE, HOSTILE_WORDS, JOINER

RULES = """
[[rule]]
args = ["echo", "**"]
action = "auto"
[[rule]]
args = ["rm", "**"]
action = "never"
"""


def is_safe(text: str) -> bool:
    # A joiner between people is seen: it makes one picture of them
    return all(line.isprintable() for line in JOINER.sub("", text).split("\n"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "adjourn").mkdir()
    (tmp_path / "adjourn" / "policy.toml").write_text(RULES)
    return str(tmp_path)


@pytest.mark.parametrize(
    "shape", [("echo", "{}"), ("sh", "-c", "{}"), ("{}", "x")], ids=["word", "text", "program"]
)
def test_an_explanation_of_hostile_words_is_safe_to_show(
    place: str, shape: tuple[str, ...]
) -> None:
    for text in HOSTILE_WORDS:
        argv = tuple(text if word == "{}" else word for word in shape)
        arguments = arguments_of(command_body(Command(argv=argv, cwd=place)))
        found = explained(place, place, "command", arguments, now=0)
        assert is_safe(to_text(explanation_blocks(found))), ascii(text)
        assert encoded(explanation_document(found))


def test_an_explanation_of_a_hostile_tool_is_safe_to_show(place: str) -> None:
    for text in (
        each
        for each in HOSTILE
        if len(each) < 10_000 and not any("\ud800" <= char <= "\udfff" for char in each)
    ):
        for tool, arguments in ((text, {text: text}), ("Bash", {"command": text})):
            found = explained(place, place, tool, arguments, now=0)
            assert is_safe(to_text(explanation_blocks(found))), ascii(text[:50])


def test_a_listing_of_a_hostile_rule_is_safe_to_show() -> None:
    for text in HOSTILE_WORDS:
        arguments = arguments_of(command_body(Command(argv=("echo", text), cwd="/")))
        rule = Allowance(
            id="x",
            call=allowed_call("command", arguments),
            programs={"echo": text},
            until=1,
            by="x",
            at=0,
        )
        assert is_safe("\n".join(what_it_matches(rule))), ascii(text)


def test_what_is_wrong_with_a_hostile_file_is_safe_to_show() -> None:
    for text in HOSTILE:
        for file in (
            text,
            f'"{text}" = 1',
            f"[[rule]]\naction = '{text}'",
            f"[[rule]]\nargs = ['[{text}']",
            f"include = ['{text}']",
        ):
            problems = read_policy(file, source="policy.toml", is_project=True).problems
            assert all(is_safe(prose(str(problem))) for problem in problems), ascii(text[:50])

"""What a call would write, as one difference: no argument is hidden that it does not tell."""

from typing import Any

import pytest

from adjourn.core.call import Call, digest_of, tool_body
from adjourn.core.states import CallState
from adjourn.core.text.render import WHOLE, Cut
from adjourn.views.block import to_text
from adjourn.views.call import call_blocks
from adjourn.views.file_change import change_of, difference_lines

CUT = Cut(limit=2_000, rest="adjourn show a1 --full", lines=10)
FILE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def shown(tool: str, arguments: dict[str, Any], copies: dict[str, str | None], cut: Cut) -> str:
    body = tool_body(tool, arguments)
    call = Call(
        task_id="a1",
        number=1,
        tool=tool,
        body=body,
        digest=digest_of(body),
        nonce="n",
        state=CallState.PENDING,
    )
    return to_text(call_blocks(call, cut=cut, copies=copies))


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    (
        (
            "write_file",
            {"path": "f", "content": FILE.replace("four", "4"), "before": "x", "diff": "a lie"},
            ["- four", "+ 4"],
        ),
        ("Edit", {"file_path": "f", "old_string": "four", "new_string": "4"}, ["- four", "+ 4"]),
        (
            "edit_file",
            {"path": "f", "old": "e\n", "new": "E\n", "all": True},
            ["- one", "+ onE", "- three", "+ threE", "- five", "+ fivE"],
        ),
        (
            "MultiEdit",
            {
                "file_path": "f",
                "edits": [
                    {"old_string": "one", "new_string": "1"},
                    {"old_string": "1\ntwo", "new_string": "1\n2"},
                ],
            },
            ["- one", "- two", "+ 1", "+ 2"],
        ),
        # A place that is not found, or found twice: both texts, whole
        ("Edit", {"file_path": "f", "old_string": "ten", "new_string": "10"}, ["- ten", "+ 10"]),
        ("Edit", {"file_path": "f", "old_string": "e", "new_string": "E"}, ["- e", "+ E"]),
        (
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Update File: f\n@@\n-four\n+4\n*** End Patch\n"},
            ["- four", "+ 4"],
        ),
        (
            "apply_patch",
            {"changes": [{"path": "f", "kind": {"type": "add"}, "diff": "new\n"}]},
            ["+ new"],
        ),
    ),
)
def test_a_write_is_one_difference(
    tool: str, arguments: dict[str, Any], expected: list[str]
) -> None:
    text = shown(tool, arguments, {"f": FILE}, CUT)
    signed = [row.strip() for row in text.split("\n") if row.strip()[:2] in {"- ", "+ "}]
    assert signed == expected
    assert "a lie" not in text


def test_without_a_copy_all_that_is_written_is_shown() -> None:
    change = change_of("Write", {"file_path": "f", "content": "a\nb\n"}, {})
    assert change is not None
    assert change.files[0].lines == ("+ a", "+ b")
    assert "no copy" in change.files[0].remark


@pytest.mark.parametrize(
    ("tool", "arguments"),
    (
        ("Write", {"file_path": "f", "content": ["no text"]}),
        ("Write", {"file_path": 3, "content": "x"}),
        ("Edit", {"file_path": "f", "old_string": "x", "new_string": "y", "replace_all": "yes"}),
        ("MultiEdit", {"file_path": "f", "edits": [{"old_string": "x"}]}),
        ("MultiEdit", {"file_path": "f", "edits": []}),
        ("apply_patch", {"changes": [{"path": "f", "kind": "add", "diff": "", "more": 1}]}),
        ("apply_patch", {"changes": "text"}),
        ("mcp__files__write", {"path": "f", "content": "x"}),
    ),
)
def test_what_is_not_understood_is_shown_by_its_arguments(
    tool: str, arguments: dict[str, Any]
) -> None:
    assert change_of(tool, arguments, {"f": FILE}) is None
    assert all(name in shown(tool, arguments, {}, CUT) for name in arguments)


def test_arguments_that_a_difference_does_not_tell_are_shown() -> None:
    text = shown(
        "write_file",
        {"path": "f", "content": "x\n", "real_path": "/etc/passwd", "mode": 7},
        {"f": None},
        CUT,
    )
    assert 'real_path: "/etc/passwd"' in text
    assert "mode: 7" in text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    (
        ("a\n", "a\n", []),
        ("a\n", "a", ["+ \\ no newline at the end"]),
        ("a", "a\n", ["- \\ no newline at the end"]),
        ("", "a", ["@@ line 1", "+ a", "  \\ no newline at the end"]),
        ("a\n", "a\x1b[2J\n", ["@@ line 1", "- a", "+ a\\u{1b}[2J"]),
        ("a\n", "", ["@@ line 1", "- a"]),
    ),
)
def test_lines_that_differ_show_what_cannot_be_seen(
    before: str, after: str, expected: list[str]
) -> None:
    assert difference_lines(before, after) == expected


def test_shell_text_is_what_could_be_pasted_and_the_rest_is_named() -> None:
    text = shown("Bash", {"command": "cat <<E\nhi\nE\n", "timeout": 5}, {}, CUT)
    assert "    $ cat <<E\n    > hi\n    > E\n    timeout: 5" in text
    hidden = shown("Bash", {"command": "echo hi" + " " * 90 + "; rm -rf /"}, {}, CUT)
    assert "$ echo" not in hidden
    assert "spaces}; rm -rf /" in hidden


def test_whole_shows_every_argument_as_it_is() -> None:
    text = shown("Write", {"file_path": "f", "content": "a\n"}, {"f": "b\n"}, WHOLE)
    assert 'content: "a\\n"' in text

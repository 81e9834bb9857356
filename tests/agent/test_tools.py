"""What the agent's own tools do to files, and where they refuse to go."""

import os
from pathlib import Path
from typing import Any

import pytest

from adjourn.core.agent.transcript import ToolCall
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.tool import ToolFailed
from adjourn.runners.agent.tools.toolbox import Toolbox, toolbox

SETUP = AgentSetup(model="openai:scripted")


@pytest.fixture
def tools(tmp_path: Path) -> Toolbox:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "one.py").write_text("first = 1\nsecond = 2\n")
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    return toolbox(SETUP, [], workspace=str(tmp_path), pauses=True)


def do(tools: Toolbox, name: str, **arguments: Any) -> str:
    """Prepare a call and carry it out, as when nobody objects."""
    _, prepared = tools.prepared(ToolCall(id="tc", name=name, arguments=arguments))
    return tools.carry_out(name, prepared)


# --- looking --------------------------------------------------------------------------------------


def test_a_file_is_read_whole_or_by_lines(tools: Toolbox) -> None:
    assert do(tools, "read_file", path="src/one.py") == "first = 1\nsecond = 2"
    assert (
        do(tools, "read_file", path="src/one.py", limit=1)
        == "first = 1\n[1 more lines; go on with offset 2]"
    )
    assert do(tools, "read_file", path="src/one.py", offset=2) == "second = 2"


def test_what_is_too_long_is_cut_and_says_so(tools: Toolbox, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 100_000)
    shown = do(tools, "read_file", path="long.txt")
    assert len(shown) < 31_000
    assert "70000 of 100000 characters of long.txt left out here" in shown


def test_directories_are_listed_and_patterns_found_below(tools: Toolbox) -> None:
    assert do(tools, "list_files") == "notes.txt\nsrc/"
    assert do(tools, "list_files", pattern="*.py") == "src/one.py"
    assert do(tools, "list_files", path="src", pattern="*.rs") == "nothing"


def test_lines_are_found_by_regular_expression(tools: Toolbox) -> None:
    assert do(tools, "search_files", pattern=r"sec\w+") == "src/one.py:2:second = 2"
    assert do(tools, "search_files", pattern="milk", files="*.py") == "nothing"
    with pytest.raises(ToolFailed, match="no regular expression"):
        do(tools, "search_files", pattern="(")


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("read_file", {"path": "none.txt"}, "none.txt: No such file"),
        ("read_file", {"path": "src"}, "src is not a file"),
        ("read_file", {"path": "binary"}, "not a text in UTF-8"),
        ("read_file", {"path": "pipe"}, "pipe is not a file"),
        ("list_files", {"path": "notes.txt"}, "Not a directory"),
        ("read_file", {}, "path"),
        ("read_file", {"path": "notes.txt", "offset": 0}, "at least 1"),
        ("read_file", {"path": "notes.txt", "mode": "r"}, "mode"),
        ("no_such_tool", {}, "there is no tool no_such_tool; there are read_file, "),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    tools: Toolbox, tmp_path: Path, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolFailed, match=sentence):
        do(tools, name, **arguments)


# --- the workspace's edge -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "/etc/passwd",
        "link/passwd",
        "src/../../outside.txt",
        ".adjourn/adjourn.db",
    ],
)
@pytest.mark.parametrize(
    "name", ["read_file", "list_files", "search_files", "write_file", "edit_file"]
)
def test_no_path_leads_out_of_the_workspace_or_into_the_store(
    tools: Toolbox, tmp_path: Path, name: str, path: str
) -> None:
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path.parent / "outside.txt").write_text("secret")
    (tmp_path / ".adjourn").mkdir()
    (tmp_path / ".adjourn" / "adjourn.db").write_text("secret")
    arguments = {
        "search_files": {"pattern": "secret"},
        "write_file": {"content": "mine"},
        "edit_file": {"old": "secret", "new": "mine"},
    }.get(name, {})
    with pytest.raises(ToolFailed, match=r"outside of the workspace|belongs to adjourn"):
        do(tools, name, path=path, **arguments)
    assert (tmp_path.parent / "outside.txt").read_text() == "secret"


def test_a_search_does_not_follow_links_out(tools: Toolbox, tmp_path: Path) -> None:
    (tmp_path.parent / "private.txt").write_text("a secret word")
    (tmp_path / "innocent.txt").symlink_to(tmp_path.parent / "private.txt")
    assert do(tools, "search_files", pattern="secret") == "nothing"


def test_further_directories_are_open_when_the_policy_says_so(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (tmp_path / "work").mkdir()
    other.mkdir()
    (other / "file.txt").write_text("hello")
    setup = AgentSetup(model="openai:scripted")
    tools = toolbox(
        setup, [], workspace=str(tmp_path / "work"), directories=[str(other)], pauses=True
    )
    assert do(tools, "read_file", path=f"{other}/file.txt") == "hello"


# --- writing --------------------------------------------------------------------------------------


def test_a_write_shows_what_would_change_and_changes_that(tools: Toolbox, tmp_path: Path) -> None:
    _, prepared = tools.prepared(
        ToolCall(id="tc", name="write_file", arguments={"path": "notes.txt", "content": "bread\n"})
    )
    assert (
        prepared["diff"]
        == "--- notes.txt\n+++ notes.txt\n@@ -1 +1 @@\n-remember the milk\n+bread\n"
    )
    assert tools.carry_out("write_file", prepared) == "notes.txt: 6 bytes written"
    assert (tmp_path / "notes.txt").read_text() == "bread\n"
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "src"]


def test_a_new_file_gets_its_directories(tools: Toolbox, tmp_path: Path) -> None:
    assert do(tools, "write_file", path="a/b/c.txt", content="new") == "a/b/c.txt: 3 bytes written"
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "new"


def test_a_file_keeps_its_mode(tools: Toolbox, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").chmod(0o750)
    do(tools, "edit_file", path="notes.txt", old="milk", new="bread")
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_a_file_that_changed_since_the_approver_looked_is_left_alone(
    tools: Toolbox, tmp_path: Path, name: str
) -> None:
    given = {"write_file": {"content": "bread"}, "edit_file": {"old": "milk", "new": "bread"}}[name]
    _, prepared = tools.prepared(
        ToolCall(id="tc", name=name, arguments={"path": "notes.txt", **given})
    )
    (tmp_path / "notes.txt").write_text("remember the milk, and the eggs\n")
    with pytest.raises(ToolFailed, match="has changed since the call was proposed"):
        tools.carry_out(name, prepared)
    assert (tmp_path / "notes.txt").read_text() == "remember the milk, and the eggs\n"


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_a_second_try_knows_its_own_work_again(tools: Toolbox, tmp_path: Path, name: str) -> None:
    given = {"write_file": {"content": "bread"}, "edit_file": {"old": "milk", "new": "milk milk"}}[
        name
    ]
    _, prepared = tools.prepared(
        ToolCall(id="tc", name=name, arguments={"path": "notes.txt", **given})
    )
    tools.carry_out(name, prepared)
    before = (tmp_path / "notes.txt").read_bytes()
    assert tools.carry_out(name, prepared) == "notes.txt was written already"
    assert (tmp_path / "notes.txt").read_bytes() == before


def test_an_edit_must_fit_exactly_one_place_unless_all_are_meant(
    tools: Toolbox, tmp_path: Path
) -> None:
    (tmp_path / "twice.txt").write_text("a a")
    with pytest.raises(ToolFailed, match="2 times"):
        do(tools, "edit_file", path="twice.txt", old="a", new="b")
    with pytest.raises(ToolFailed, match="does not hold"):
        do(tools, "edit_file", path="twice.txt", old="z", new="b")
    do(tools, "edit_file", path="twice.txt", old="a", new="b", all=True)
    assert (tmp_path / "twice.txt").read_text() == "b b"


# --- what is offered ------------------------------------------------------------------------------


def test_finish_and_ask_are_offered_only_where_they_mean_something() -> None:  # A-R17
    def names(*, pauses: bool, clarify: bool) -> set[str]:
        offered = toolbox(
            AgentSetup(model="openai:scripted", clarify=clarify), [], workspace="/", pauses=pauses
        ).tools
        return {tool.name for tool in offered} & {"finish", "ask", "request_human_input"}

    assert names(pauses=False, clarify=False) == set()
    assert names(pauses=True, clarify=False) == {"finish"}
    assert names(pauses=True, clarify=True) == {"finish", "ask"}


def test_a_tool_knows_when_its_arguments_are_no_object(tools: Toolbox) -> None:
    with pytest.raises(ToolFailed, match="not a JSON object"):
        tools.prepared(ToolCall(id="tc", name="read_file", arguments='{"path'))

"""What requests of agents mean: the options that real agents offer, and what is built from what they tell."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adjourn.core.errors import Misuse
from adjourn.ports.runner import ConfigTable
from adjourn.runners.acp.agents import OURS, Agent, find_agent
from adjourn.runners.acp.options import Setup
from adjourn.runners.acp.protocol import (
    AgentCall,
    Option,
    Permission,
    is_careless,
    wanted_call,
)
from adjourn.runners.acp.session import AgentSession, copy_session, put_session_back
from adjourn.runners.channel import StopRequested
from adjourn.runners.driver import StopRequest

ONCE = Option("allow", "Allow", "allow_once")


@pytest.mark.parametrize(
    ("option", "is_plain"),
    [
        (ONCE, True),
        (Option("proceed_once", "Yes, just this once", "allow_once"), True),
        (Option("allow_once", "Allow once", "allow_once"), True),
        (Option("proceed_always", "Always allow", "allow_always"), False),
        (Option("restore_mode", "Yes, and go back to auto mode", "allow_once"), False),
        (Option("risk_based", "Allow, and ask by risk", "allow_once"), False),
        (Option("ok", "Yes, and don't ask again this session", "allow_once"), False),
        (Option("ok", "Allow all edits", "allow_once"), False),
    ],
)
def test_a_plain_yes_lets_one_call_run_and_does_no_more(option: Option, *, is_plain: bool) -> None:
    permission = Permission("s", AgentCall(tool_call_id="c"), (option,))
    assert bool(permission.yeses) is is_plain


@pytest.mark.parametrize(
    ("mode", "asks"),
    [
        ("default", True),
        ("plan", True),
        ("read-only", True),
        ("https://agentclientprotocol.com/protocol/session-modes#agent", True),
        ("https://agentclientprotocol.com/protocol/session-modes#autopilot", False),
        ("yolo", False),
        ("auto", False),
        ("autoEdit", False),
        ("accept-edits", False),
        ("acceptEdits", False),
        ("auto-approve", False),
        ("bypassPermissions", False),
        ("agent-full-access", False),
    ],
)
def test_a_mode_in_which_nobody_is_asked_is_known_by_its_name(mode: str, *, asks: bool) -> None:
    assert is_careless(mode) is not asks


def shown(call: AgentCall, **more: Any) -> tuple[str, dict[str, Any]]:
    wanted = wanted_call(1, Permission("s", call, (ONCE,)), [call], agent=Agent(**more))
    return wanted.tool, wanted.arguments


DIFF = {"type": "diff", "path": "/w/a", "oldText": "1", "newText": "2"}
TEXT = {"type": "content", "content": {"type": "text", "text": "GET https://example.org"}}


@pytest.mark.parametrize(
    ("told", "tool", "arguments"),
    [
        ({"kind": "execute", "raw_input": {"command": "ls"}}, "shell", {"command": "ls"}),
        ({"raw_input": {"command": ["ls", "-l"]}}, "shell", {"command": ["ls", "-l"]}),
        (
            {"kind": "execute", "raw_input": {"command": "ls", "dir_path": "/"}},
            "shell",
            {"command": "ls", "dir_path": "/", "workdir": "/"},
        ),
        (
            {"kind": "edit", "content": [DIFF], "locations": [{"path": "/w/a"}]},
            "edit",
            {"changes": [{"path": "/w/a", "old": "1", "new": "2"}], "path": "/w/a"},
        ),
        ({"kind": "fetch", "content": [TEXT]}, "fetch", {"content": ["GET https://example.org"]}),
        (
            {
                "kind": "other",
                "raw_input": {"command": "x"},
                "locations": [{"path": "a"}, {"path": "b"}],
            },
            "other",
            {"input": {"command": "x"}, "paths": ["a", "b"]},
        ),
        ({"kind": "execute", "title": "ls"}, "execute", {}),
        ({"kind": "execute", "title": "ls", "raw_input": {}}, "execute", {}),
    ],
)
def test_a_call_is_what_would_run(
    told: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    assert shown(AgentCall(tool_call_id="c", **told)) == (tool, arguments)


def test_where_commands_share_a_shell_their_directory_is_not_told() -> None:
    call = AgentCall(tool_call_id="c", kind="execute", raw_input={"command": "ls"})
    assert shown(call, keeps_shell=True)[1]["workdir"] == "not told"


def test_the_users_table_changes_an_agent_and_says_what_it_does_not_take() -> None:
    table = ConfigTable(path="config.toml", values={"gemini": {"title_is_call": True}})
    agent = find_agent("gemini", table)
    assert agent == msgspec.structs.replace(OURS["gemini"], title_is_call=True)
    assert not any(each.trust or each.title_is_call for each in OURS.values())
    for own in ({"titel": True}, {"trust": "yes"}, 3):
        with pytest.raises(Misuse, match=r"config.toml: \[acp.gemini\]"):
            find_agent("gemini", ConfigTable(path="config.toml", values={"gemini": own}))
    with pytest.raises(Misuse, match="has no command"):
        find_agent("mine", ConfigTable(path="config.toml", values={"mine": {}}))


def test_a_session_that_its_agent_erased_is_put_back_from_its_copy(tmp_path: Path) -> None:
    """Gemini CLI erases one that is loaded in the minute of its start."""
    place = tmp_path / ".gemini" / "tmp" / "x" / "chats" / "session-2026-a9a23f6c.json"
    place.parent.mkdir(parents=True)
    place.write_text("all of it")
    session = "a9a23f6c-eab0-427f-9c56-25c56cab52b0"
    pattern = OURS["gemini"].session_files
    copy = copy_session(pattern, home=str(tmp_path), session=session)
    assert copy
    place.write_text("")
    put_session_back(copy, home=str(tmp_path))
    assert place.read_text() == "all of it"
    place.write_text("all of it, and more")
    put_session_back(copy, home=str(tmp_path))
    assert place.read_text() == "all of it, and more"
    put_session_back(b"../outside\nx", home=str(tmp_path))
    assert not (tmp_path.parent / "outside").exists()
    assert copy_session(pattern, home=str(tmp_path), session="*") is None


def test_the_wait_for_the_next_minute_ends_with_a_request_to_stop() -> None:
    session = AgentSession.__new__(AgentSession)
    session._setup = Setup(name="gemini", agent=OURS["gemini"])
    session._interrupts = StopRequest()
    session.wait_for_next_minute(time.time() - 60)
    session._interrupts.make()
    with pytest.raises(StopRequested):
        session.wait_for_next_minute(time.time() + 60)

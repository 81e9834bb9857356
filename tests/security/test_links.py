"""A write goes where it is shown: a link takes neither a rule nor a person to another file."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adjourn.core.agent.transcript import ToolCall
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.tool import ToolFailed
from adjourn.runners.agent.tools.toolbox import Toolbox, toolbox
from tests.agent.desk import desk, finish, use
from tests.claude.scene import Scene as ClaudeScene
from tests.codex.scene import Scene as CodexScene
from tests.codex.scene import patch
from tests.model.script import ToolUse, Turn

HOOK = ".git/hooks/pre-commit"
DONE = Turn(text="All done.")


def plant_link(work: Path) -> Path:
    """Make a file of the documentation that is a link to a hook of git; return the hook."""
    (work / "docs").mkdir()
    (work / ".git" / "hooks").mkdir(parents=True)
    (work / "docs" / "notes.md").symlink_to(f"../{HOOK}")
    return work / HOOK


def write_policy(work: Path, text: str) -> None:
    """Write the user's own policy."""
    place = work / ".config" / "adjourn"
    place.mkdir(parents=True, exist_ok=True)
    (place / "policy.toml").write_text(text)


WRITE = ToolUse(
    name="write_file", arguments={"path": "docs/notes.md", "content": "#!/bin/sh\n"}, id="write"
)
DOCS = '[[rule]]\ntool = "write_file"\nargs = { path = "docs/*" }\naction = "auto"\n'


# --- the built-in agent ---------------------------------------------------------------------------


def test_the_agent_cannot_write_a_hook_through_a_link_in_what_a_rule_names(tmp_path: Path) -> None:
    hook = plant_link(tmp_path)
    write_policy(tmp_path, DOCS)
    with desk(tmp_path, use(WRITE), finish()) as person:
        paused = person.agent_run(expect=10)
        shown = person.adjourn("show", paused["task_id"], "--full").out
        assert f'real_path: "{HOOK}"' in shown
        assert f"file docs/notes.md leads to {tmp_path}/{HOOK}" in shown
        (told,) = paused["pause_reason"]["pending_tool_calls"]
        assert told["files"] == {"docs/notes.md": f"leads to {tmp_path}/{HOOK}"}
        assert not hook.exists()
        person.resumed(paused, "--approve-all", expect=0)  # the person saw where it leads
    assert hook.read_text() == "#!/bin/sh\n"
    assert (tmp_path / "docs" / "notes.md").is_symlink()


def test_the_agent_cannot_get_past_a_rule_that_forbids_by_way_of_a_link(tmp_path: Path) -> None:
    hook = plant_link(tmp_path)
    never = '[[rule]]\ntool = "*_file"\nargs = { path = ".git/*" }\naction = "never"\n'
    write_policy(tmp_path, f'never = "reject"\n{DOCS}{never}')
    with desk(tmp_path, use(WRITE), finish()) as person:
        person.agent_run(expect=0)
    assert not hook.exists()
    assert person.results()["write"].startswith("TOOL_CALL_REJECTED")


def test_a_link_that_comes_after_the_approval_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    with desk(tmp_path, use(WRITE), finish()) as person:
        paused = person.agent_run(expect=10)
        person.adjourn("approve", *[ask["id"] for ask in paused["asks"]])
        (tmp_path / "docs" / "notes.md").symlink_to(f"../{HOOK}")
        again = person.json("resume", paused["task_id"], expect=10)
        assert "leads to" in person.adjourn("show", again["task_id"], "--full").out
        person.adjourn("cancel", again["task_id"])
    assert not (tmp_path / HOOK).exists()


@pytest.fixture
def tools(tmp_path: Path) -> Toolbox:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "notes.md").write_text("old\n")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    return toolbox(AgentSetup(model="openai:scripted"), [], workspace=str(tmp_path), pauses=True)


def prepared(tools: Toolbox, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call as a person sees them."""
    return tools.prepared(ToolCall(id="tc", name=name, arguments=arguments))[1]


@pytest.mark.parametrize("swap", ["the file", "its directory"])
@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_a_link_that_comes_between_the_last_look_and_the_write_leads_nowhere(
    tools: Toolbox, tmp_path: Path, name: str, swap: str
) -> None:
    words = {"content": "new\n"} if name == "write_file" else {"old": "old", "new": "new"}
    arguments = prepared(tools, name, path="docs/notes.md", **words)
    elsewhere = tmp_path / ".git" / "hooks" / "notes.md"
    elsewhere.write_text("old\n")
    if swap == "the file":
        (tmp_path / "docs" / "notes.md").unlink()
        (tmp_path / "docs" / "notes.md").symlink_to("../.git/hooks/notes.md")
    else:
        os.rename(tmp_path / "docs", tmp_path / "away")
        (tmp_path / "docs").symlink_to(".git/hooks")
    with pytest.raises(ToolFailed, match=r"leads to \.git/hooks/notes\.md now"):
        tools.carry_out(name, arguments)
    assert elsewhere.read_text() == "old\n"


def test_a_link_that_is_swapped_while_it_is_written_never_leads_elsewhere(
    tools: Toolbox, tmp_path: Path
) -> None:
    """Another process turns the directory into a link and back, as fast as it can."""
    elsewhere = tmp_path / ".git" / "hooks" / "notes.md"
    (tmp_path / "link").symlink_to(".git/hooks")
    swap = "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.renameat2(-100, b'docs', -100, b'link', 2)"
    attacker = subprocess.Popen([sys.executable, "-c", swap], cwd=tmp_path)
    written = 0
    try:
        for number in range(1_000):
            try:
                arguments = prepared(
                    tools, "write_file", path="docs/notes.md", content=f"{number}\n"
                )
                if "real_path" not in arguments:
                    tools.carry_out("write_file", arguments)
                    written += 1
            except ToolFailed:
                continue
            assert not elsewhere.exists()
    finally:
        attacker.kill()
        attacker.wait()
    assert not elsewhere.exists()
    assert written > 0


# --- the agents of others -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Write", "Edit"])
def test_claude_cannot_write_a_hook_through_a_link_in_what_a_rule_names(
    claude: ClaudeScene, name: str
) -> None:
    hook = plant_link(claude.work)
    path = f"{claude.work}/docs/notes.md"
    claude.let_pass(f'tool = "{name}"\nargs = {{ file_path = "{claude.work}/docs/*" }}')
    words = (
        {"content": "#!/bin/sh\n"} if name == "Write" else {"old_string": "a", "new_string": "b"}
    )
    hook.write_text("a\n") if name == "Edit" else None
    looks = ToolUse(name="Read", arguments={"file_path": path}, id="toolu_R")
    call = ToolUse(name=name, arguments={"file_path": path, **words}, id="toolu_A")
    turns = (
        [Turn(calls=(call,))] if name == "Write" else [Turn(calls=(looks,)), Turn(calls=(call,))]
    )
    with claude.model([*turns, DONE]):
        claude.run()
        assert f"file {path} leads to {hook}" in claude.shown()
    assert not hook.exists() or hook.read_text() == "a\n"


def test_claude_cannot_write_a_hook_by_another_name_of_it(claude: ClaudeScene) -> None:
    """A hard link leads nowhere, and what is written there is the hook itself."""
    (claude.work / "docs").mkdir()
    hook = claude.work / HOOK
    hook.parent.mkdir(parents=True)
    hook.write_text("a\n")
    path = f"{claude.work}/docs/notes.md"
    os.link(hook, path)
    claude.let_pass(f'tool = "*"\nargs = {{ file_path = "{claude.work}/docs/*" }}')
    reads = ToolUse(name="Read", arguments={"file_path": path}, id="toolu_R")
    writes = ToolUse(name="Write", arguments={"file_path": path, "content": "evil"}, id="toolu_A")
    with claude.model([Turn(calls=(reads,)), Turn(calls=(writes,)), DONE]):
        claude.run()
        assert "a hard link" in claude.shown()
    assert hook.read_text() == "a\n"


def test_the_agent_writes_no_other_name_of_a_file(tmp_path: Path) -> None:
    """A rule does not let it, and a person who does gets a new file, and leaves the hook as it is."""
    hook = plant_link(tmp_path)
    hook.write_text("a\n")
    (tmp_path / "docs" / "notes.md").unlink()
    os.link(hook, tmp_path / "docs" / "notes.md")
    write_policy(tmp_path, DOCS)
    with desk(tmp_path, use(WRITE), finish()) as person:
        paused = person.agent_run(expect=10)
        assert "a hard link" in person.adjourn("show", paused["task_id"], "--full").out
        person.resumed(paused, "--approve-all", expect=0)
    assert hook.read_text() == "a\n"
    assert (tmp_path / "docs" / "notes.md").read_text() == "#!/bin/sh\n"


def test_claude_cannot_be_led_elsewhere_after_the_approval(claude: ClaudeScene) -> None:
    (claude.work / "docs").mkdir()
    (claude.work / ".git" / "hooks").mkdir(parents=True)
    call = ToolUse(
        name="Write",
        arguments={"file_path": f"{claude.work}/docs/notes.md", "content": "x"},
        id="toolu_A",
    )
    with claude.model([Turn(calls=(call,)), DONE]):
        claude.run()
        claude.approve_all()
        (claude.work / "docs" / "notes.md").symlink_to(f"../{HOOK}")
        claude.resume(expect=10)
        assert f"leads to {claude.work}/{HOOK}" in claude.shown()
    assert not (claude.work / HOOK).exists()


def test_codex_cannot_write_a_hook_through_a_link_in_what_a_rule_names(codex: CodexScene) -> None:
    hook = plant_link(codex.work)
    codex.allow('[[rule]]\ntool = "apply_patch"\nargs = { path = "docs/*" }\naction = "auto"\n')
    honest = patch("*** Add File: docs/honest.md\n+words", name="call_A")
    through = patch("*** Add File: docs/notes.md\n+#!/bin/sh", name="call_B")
    with codex.model([Turn(calls=(honest,)), Turn(calls=(through,)), DONE]):
        codex.run()
        assert (codex.work / "docs" / "honest.md").exists()
        assert f"file docs/notes.md leads to {hook}" in codex.shown()
    assert not hook.exists()


def test_a_patch_that_touches_one_file_outside_of_the_rule_is_asked_about(
    codex: CodexScene,
) -> None:
    (codex.work / "docs").mkdir()
    codex.allow('[[rule]]\ntool = "apply_patch"\nargs = { path = "docs/*" }\naction = "auto"\n')
    both = "*** Add File: docs/one.md\n+words\n*** Add File: setup.py\n+words"
    with codex.model([Turn(calls=(patch(both, name="call_A"),)), DONE]):
        codex.run()
    assert not (codex.work / "setup.py").exists()

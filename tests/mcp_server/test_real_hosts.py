"""The real Claude Code and Codex as parents, set up by `adjourn setup`, against a scripted model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, overload

import pytest

from tests.claude.scene import Scene as ClaudeScene
from tests.codex.scene import Scene as CodexScene
from tests.e2e.shell import Shell
from tests.mcp_server.host import events
from tests.model.script import ToolUse, Turn
from tests.programs import program
from tests.stage import Stage


class Turns(Sequence[Turn]):
    """Turns that are made when the model is asked: they name a task that was started meanwhile."""

    def __init__(self, *makers: Callable[[], Turn]) -> None:
        self._makers = makers

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Turn]: ...
    def __getitem__(self, at: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(at, slice):
            return [make() for make in self._makers[at]]
        return self._makers[at]()

    def __len__(self) -> int:
        return len(self._makers)


def supervision(stage: Stage) -> Turns:
    """Return what a model does that starts a child, sees it wait, approves, and reports."""

    def use(tool: str, **arguments: Any) -> Turn:
        return Turn(calls=(ToolUse(name=f"mcp__adjourn__{tool}", arguments=arguments),))

    def decide() -> Turn:
        (ask,) = stage.asks()
        decision = {"tool_call_id": ask["tool_call_id"], "approved": True}
        return use("resume_task", task_id=stage.task, tool_decisions=[decision])

    return Turns(
        lambda: use("run_command_task", command=["./approved.sh"]),
        lambda: use("wait_for_tasks", task_ids=[stage.task]),
        decide,
        lambda: use("wait_for_tasks", task_ids=[stage.task]),
        lambda: Turn(text="It is deployed."),
    )


def check(stage: Stage, host: str) -> None:
    """Check that the host's child ran once, by the host's own decision."""
    assert stage.lines("effects") == ["done with approved"]
    told = events(stage.shell, stage.task)
    assert [event.by for event in told if event.kind == "ask_approved"] == [f"agent:{host}"]
    assert stage.shell.json("show", stage.task)["outcome"] == "completed"


def test_claude_code_starts_sees_the_wait_approves_and_reports(tmp_path: Path) -> None:
    """A-R6, A-R65: set up by its own command, with the tools in the first turn."""
    stage = ClaudeScene(tmp_path, program("claude"))
    stage.shell.agent("approved.sh")
    done = stage.shell.adjourn("setup", "claude")
    assert "ADJOURN_MCP_SECRET" in done.out
    assert "+" in done.out
    config = (stage.home / ".claude.json").read_text()
    assert '"alwaysLoad": true' in config
    with stage.model([Turn()]) as model:
        model.script = cast("Any", SimpleNamespace(turns=supervision(stage)))
        said = stage.shell.run(
            program("claude"), "-p", "deploy it", "--allowedTools", "mcp__adjourn"
        )
        first = model.requests[0].body
    assert "It is deployed." in said.out
    assert "mcp__adjourn__wait_for_tasks" in {tool["name"] for tool in first["tools"]}
    check(stage, "claude")
    secret = config.partition('"ADJOURN_MCP_SECRET": "')[2][:64]
    assert secret not in done.out
    stage.shell.adjourn("setup", "claude", "--undo")
    assert "ADJOURN_MCP_SECRET" not in (stage.home / ".claude.json").read_text()
    assert _ends(stage.shell)


def test_codex_starts_sees_the_wait_approves_and_reports(tmp_path: Path) -> None:
    stage = CodexScene(tmp_path, program("codex"))
    stage.shell.agent("approved.sh")
    with stage.model([Turn()]) as model:
        model.script = cast("Any", SimpleNamespace(turns=supervision(stage)))
        done = stage.shell.adjourn("setup", "codex")
        assert "required = true" in done.out
        said = stage.shell.run(program("codex"), "exec", "--skip-git-repo-check", "deploy it")
        first = str(model.requests[0].body["tools"])
    assert "It is deployed." in said.out
    assert "adjourn" in first
    check(stage, "codex")
    stage.shell.adjourn("setup", "codex", "--undo")
    assert "adjourn" not in (stage.home / ".codex" / "config.toml").read_text()
    assert _ends(stage.shell)


def _ends(shell: Shell) -> bool:
    return shell.end() == {}


@pytest.mark.parametrize("words", [("codex", "--project"), ("vscode",)])
def test_a_host_that_cannot_be_set_up_so_is_refused(tmp_path: Path, words: Any) -> None:
    done = Shell(tmp_path).adjourn("setup", *words, expect=2)
    assert "adjourn setup" in done.err

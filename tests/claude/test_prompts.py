"""What stands behind the prompts of a person's own sessions, without Claude Code."""

from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.shell import ADJOURN, Shell


def hooked(shell: Shell, event: str, **settings: Any) -> Any:
    """Return what `adjourn _permission` answers Claude Code before a call."""
    told = {
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": "echo hi"},
        "cwd": str(shell.place),
    }
    done = shell.run(str(ADJOURN), "_permission", stdin=msgspec.json.encode(told), **settings)
    return msgspec.json.decode(done.raw)["hookSpecificOutput"] if done.raw else None


def test_a_policy_that_cannot_be_read_asks_the_person_at_the_terminal(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert hooked(shell, "PreToolUse") is None  # no rule is about it
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True)
    (config / "policy.toml").write_text("[[rule]]\n")
    assert hooked(shell, "PreToolUse")["permissionDecision"] == "ask"
    assert hooked(shell, "PreToolUse", env={"ADJOURN_RUN_ID": "x.1"}) is None  # a run has its own


def test_what_is_no_request_is_told_without_a_decision(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.run(str(ADJOURN), "_permission", stdin=b"{", expect=1)
    assert (told.out, "is not a request of Claude Code's" in told.err) == ("", True)


def test_settings_of_others_stay_as_they_are(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    settings = tmp_path / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    own = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}, "model": "opus"}
    settings.write_bytes(msgspec.json.encode(own))
    words = ("setup", "claude", "--interactive", "--project")
    for _ in range(2):
        shell.adjourn(*words)
        hooks = msgspec.json.decode(settings.read_bytes())["hooks"]
        assert (len(hooks["PreToolUse"]), len(hooks["PermissionRequest"])) == (2, 1)
    shell.adjourn(*words, "--undo")
    assert msgspec.json.decode(settings.read_bytes()) == own
    settings.write_text("{")
    assert "is not settings of Claude Code" in shell.adjourn(*words, expect=1).err
    assert "has no hook" in shell.adjourn("setup", "codex", "--interactive", expect=2).err

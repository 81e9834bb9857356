"""Whatever Codex's own rules and settings would let pass, the real Codex makes no call that the policy does not."""

import sys
from pathlib import Path

import pytest

from tests.codex.scene import Scene, outputs, shell
from tests.model.script import ToolUse, Turn

SERVER = Path(__file__).parent / "mcp_server.py"
DONE = Turn(text="All done.")
ALLOWS = 'prefix_rule(pattern=["touch"], decision="allow")\n'


@pytest.mark.parametrize("where", ["home", "project"])
def test_a_rule_of_codex_that_allows_a_command_lets_nothing_through(real: Scene, where: str) -> None:
    rules = (real.codex_home if where == "home" else real.work / ".codex") / "rules"
    with real.model([Turn(calls=(shell("touch made.txt", name="call_A"),)), DONE], more=_trusting(real)):
        rules.mkdir(parents=True)
        (rules / "default.rules").write_text(ALLOWS)
        real.run()
        assert not (real.work / "made.txt").exists()
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_A"]


def test_what_the_policy_never_allows_is_turned_down_at_once_and_the_model_reads_why(real: Scene) -> None:
    real.allow('never = "reject"\n[[rule]]\nargs = ["touch", "**"]\naction = "never"\n')
    with real.model([Turn(calls=(shell("touch made.txt", name="call_A"),)), DONE]) as model:
        real.run(expect=0)
    assert not (real.work / "made.txt").exists()
    assert outputs(model.asked[-1])["call_A"].startswith("TOOL_CALL_REJECTED")
    assert len(real.shell.runs(real.task)) == 1


@pytest.mark.parametrize("tool", ["write", "look"])
@pytest.mark.parametrize("mode", ["", 'default_tools_approval_mode = "approve"'])
def test_a_tool_of_an_mcp_server_waits_too_and_runs_once(real: Scene, tool: str, mode: str) -> None:
    trace = real.work / "trace.txt"
    server = f'[mcp_servers.traces]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "{trace}"]\n{mode}\n'
    calls = [Turn(calls=(ToolUse(name=f"mcp__traces__{tool}", arguments={"x": "1"}, id=f"call_{n}"),)) for n in "AB"]
    with real.model([*calls, DONE], more=server) as model:
        real.run()
        assert not trace.exists()
        assert f"mcp__traces__{tool}" in real.shown()
        real.approve_all()
        real.resume()
    assert trace.read_text() == f"{tool} 1\n"
    assert f"did {tool}" in outputs(model.asked[-1])["call_B"]


def _trusting(scene: Scene) -> str:
    return f'[projects."{scene.work}"]\ntrust_level = "trusted"\n'

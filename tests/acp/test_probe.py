"""Whether an agent asks before it acts: one that does not, or that nobody has seen to, is refused under a gate."""

import pytest

from tests.acp.scene import DONE, Scene, run

# What two real agents were seen to do: Hermes 0.19 runs a command unless it looks dangerous, fast-agent 0.10.46 asks
# only where its client has a terminal
HERMES = {"command": "acts", "write": "acts", "fetch": "refuses", "mcp tool": "acts"}
FAST_AGENT = {"command": "acts", "write": "refuses", "fetch": "refuses", "mcp tool": "refuses"}


def test_an_agent_that_was_seen_to_ask_runs_under_a_gate_until_its_version_changes(
    scene: Scene,
) -> None:
    scene.configure("")
    scene.play(DONE)
    refused = scene.run(expect=1)
    assert "scripted was not probed" in refused.out
    assert "adjourn doctor --agent scripted" in refused.out
    scene.play(probe={"fetch": "refuses"})
    probed = scene.shell.json("doctor", "--agent", "scripted")
    assert {each["check"]: each["says"] for each in probed["findings"]} == {
        "command": "asks",
        "write": "asks",
        "fetch": "did not do it, and did not ask",
        "mcp tool": "asks",
        "agent": "scripted 1.0 asks before it acts",
    }
    scene.play(DONE)
    scene.run(expect=0)

    # An agent that was seen to ask, and then does not, ends its run
    scene.play([run("A")], DONE, quirks=("unasked",))
    ended = scene.run(expect=1)
    assert "scripted did something without asking: echo A >> made.txt" in ended.out
    scene.play(DONE, version="2.0")
    assert "was probed at version 1.0, and this is 2.0" in scene.run(expect=1).out


@pytest.mark.parametrize("does", [HERMES, FAST_AGENT], ids=["Hermes", "fast-agent"])
def test_an_agent_that_does_not_ask_is_refused_unless_the_users_config_trusts_it(
    scene: Scene, does: dict[str, str]
) -> None:
    scene.configure("")
    scene.play(probe=does)
    probed = scene.shell.adjourn("doctor", "--agent", "scripted", expect=1)
    assert "LOOK  command      acts without asking" in probed.out
    assert "under a gate it is refused" in probed.out
    scene.play([run("A")], DONE)
    refused = scene.run(expect=1)
    assert "scripted does not ask before it acts (command: acts without asking" in refused.out
    assert scene.lines() == []
    scene.shell.adjourn("run", "--runner", "acp:scripted", "--no-pause-on-approval", "do it")
    assert scene.lines() == ["A"]

"""The same for the calls of agents.

What adjourn starts for them is pinned as far as it can be, and the ask names the rest.
"""

from pathlib import Path

from tests.agent.desk import command, desk, finish, use


def test_a_script_in_an_agents_shell_text_is_not_shown_as_if_it_were_pinned(tmp_path: Path) -> None:
    script = tmp_path / "apply.sh"
    script.write_text("#!/bin/sh\necho applied\n")
    script.chmod(0o755)
    with desk(tmp_path, use(command("./apply.sh", "a")), finish()) as person:
        paused = person.agent_run(expect=10)
        shown = person.adjourn("show", paused["task_id"]).out
        (line,) = [line for line in shown.splitlines() if line.strip().startswith("not pinned:")]
        assert "apply.sh" in line
        person.resumed(paused, "--approve", "a", expect=0)
        assert "program executed" in person.adjourn("show", paused["task_id"], "--full").out
    assert person.results() == {"a": "applied"}


def test_a_script_that_changed_after_the_approval_does_not_run_for_an_agent(tmp_path: Path) -> None:
    script = tmp_path / "apply.sh"
    script.write_text("#!/bin/sh\necho good\n")
    script.chmod(0o755)
    with desk(tmp_path, use(command("./apply.sh", "a")), finish()) as person:
        paused = person.agent_run(expect=10)
        person.adjourn("approve", paused["asks"][0]["id"])
        script.write_text("#!/bin/sh\necho evil > evil\n")
        again = person.json("resume", paused["task_id"], expect=10)
        assert "apply.sh was sha256:" in again["asks"][-1]["prompt"]
    assert not (tmp_path / "evil").exists()

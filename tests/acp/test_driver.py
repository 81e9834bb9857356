"""What the driver makes of whatever an agent says: a scripted one says it, so these run everywhere."""

import signal
import sys

from tests.acp.scene import AGENT, DONE, Scene, run
from tests.e2e.shell import until


def test_a_call_waits_and_runs_once_when_approved(scene: Scene) -> None:
    scene.play([run("A")], [run("A", "call_B")], DONE)
    scene.run()
    assert scene.lines() == []
    (ask,) = scene.asks()
    assert "echo A >> made.txt" in scene.shown()
    scene.approve_all()
    done = scene.resume()
    assert scene.lines() == ["A"]
    assert "All done." in done.out
    assert "Repeat the identical call" in scene.session()["prompts"][1]
    assert scene.session()["told"] == ["yes"]
    assert scene.calls() == {"call_A": "done"}
    assert ask["tool_call_id"] == "call_A"


def test_a_rejection_with_its_reason_reaches_the_model_and_nothing_runs(scene: Scene) -> None:
    scene.play([run("A")], DONE)
    scene.run()
    scene.shell.adjourn("reject", scene.asks()[0]["id"], "--reason", "not today")
    scene.resume()
    assert scene.lines() == []
    assert "Rejected: not today. Do not make it again." in scene.session()["prompts"][1]


def test_of_a_batch_that_is_asked_at_once_each_is_decided_alone(scene: Scene) -> None:
    """Codex and Copilot send all requests before they wait."""
    scene.configure("trust = true\nasks_at_once = true")
    both = [run("A"), run("B", "call_B")]
    scene.play(both, [run("B", "call_C")], DONE, quirks=("at once",))
    scene.run()
    asks = {ask["tool_call_id"]: ask["id"] for ask in scene.asks()}
    assert sorted(asks) == ["call_A", "call_B"]
    scene.shell.adjourn("reject", asks["call_A"], "--reason", "not A")
    scene.shell.adjourn("approve", asks["call_B"])
    scene.resume()
    assert scene.lines() == ["B"]
    assert scene.calls() == {"call_A": "rejected", "call_B": "done"}


def test_what_the_policy_lets_runs_at_once_and_what_it_forbids_never(scene: Scene) -> None:
    """An agent whose turn ends at a no goes on: it is told why, in the same session."""
    config = scene.home / ".config" / "adjourn"
    (config / "policy.toml").write_text(
        '[[rule]]\ntool = "shell"\nargs = ["touch", "*"]\naction = "auto"\n'
        '[[rule]]\ntool = "shell"\nargs = ["rm", "**"]\naction = "never"\n'
    )
    made, never = {"run": "touch here", "id": "call_A"}, {"run": "rm -rf home", "id": "call_B"}
    scene.play([made], [never], DONE, quirks=("cancels",))
    scene.shell.adjourn("run", "--runner", "acp:scripted", "--no-pause-on-approval", "do it")
    assert (scene.work / "here").exists()
    assert scene.calls() == {"call_A": "done", "call_B": "rejected"}
    assert scene.session()["prompts"][1].startswith("Some of your tool calls were not run:")


def test_a_question_of_the_agent_is_asked_and_its_answer_goes_back_as_a_form(scene: Scene) -> None:
    form = {
        "message": "Where to?",
        "schema": {"type": "object", "properties": {"db": {"type": "string", "title": "Database"}}},
    }
    scene.play([{"ask": form}], [{"ask": form}], DONE)
    scene.run()
    assert "Where to?" in scene.asks()[0]["prompt"]
    scene.resume("SQLite")
    assert "The answer is: SQLite" in scene.session()["prompts"][1]
    assert scene.session()["told"] == [["accept", {"db": "SQLite"}]]


def test_ctrl_c_pauses_and_a_resume_goes_on_in_the_same_session(scene: Scene) -> None:
    scene.play([{"run": "echo began >> made.txt; sleep 60", "id": "call_A"}], DONE)
    process = scene.shell.start(
        "run", "--runner", "acp:scripted", "--no-pause-on-approval", "do it"
    )
    until(lambda: scene.lines() == ["began"], what="the command runs")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 10
    assert scene.shell.processes() == {}
    assert scene.calls() == {"call_A": "failed"}
    scene.resume()
    (first, second) = scene.shell.runs(scene.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]
    assert "It failed" in scene.session()["prompts"][1]

    assert second["usage"]["input_tokens"] == 100


def test_an_agent_that_dies_at_a_call_leaves_it_uncertain(scene: Scene) -> None:
    scene.play([run("A")], [run("A", "call_B")], DONE, quirks=("dies",))
    scene.run()
    scene.approve_all()
    scene.resume(expect=10)
    assert scene.calls() == {"call_A": "uncertain"}
    scene.play([run("A")], [run("A", "call_B")], DONE)
    scene.shell.adjourn("settle", scene.asks()[0]["id"], "it-ran")
    scene.resume()
    assert scene.lines() == ["A"]
    assert "It ran, says" in scene.session()["prompts"][2]


def test_a_session_that_its_agent_has_forgotten_is_not_begun_anew_but_can_be_restarted(
    scene: Scene,
) -> None:
    scene.play([run("A")], DONE)
    scene.run()
    scene.approve_all()
    scene.play([run("A")], DONE, quirks=("forgets",))
    refused = scene.resume(expect=1)
    assert f"adjourn restart {scene.task}" in refused.out
    assert scene.lines() == []
    scene.play(DONE)
    scene.shell.adjourn("restart", scene.task)


def test_an_agent_without_a_name_is_given_by_its_command(scene: Scene) -> None:
    scene.play([{"write": "note.txt", "text": "hello\n", "id": "call_A"}], DONE)
    words = ("run", "--runner", "acp", "--no-pause-on-approval", "do it", "--")
    scene.shell.adjourn(*words, sys.executable, str(AGENT))
    assert (scene.work / "note.txt").read_text() == "hello\n"
    refused = scene.shell.adjourn("run", "--runner", "acp:nobody", "do it", expect=2)
    assert "no ACP agent nobody; known are claude, codex, opencode" in refused.err
    refused = scene.shell.adjourn("run", "--runner", "acp", "do it", expect=2)
    assert "needs an agent" in refused.err

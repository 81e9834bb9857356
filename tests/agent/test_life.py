"""The life of an agent's task: it stops for a person, leaves, and comes back with the answer."""

from pathlib import Path

import msgspec
import pytest

from tests.agent.desk import command, desk, finish, out_of_order, say, use
from tests.model.script import ToolUse, Turn, Usage


def test_the_three_invocations_of_the_rfc_are_one_task(tmp_path: Path) -> None:
    """A-R1 A-R3 A-R5 A-R12 A-R21 A-R23 A-R36 A-R40 A-R43 A-R45 A-R46 A-R50 A-R56 A-R61."""
    script = [
        use(
            command("echo applied >> log.txt", "tc_1"),
            text="I'm about to apply the terraform changes.",
        ),
        say("Applied. Shall I switch the traffic?"),
        finish("Deployment complete."),
    ]
    with desk(tmp_path, *script) as person:
        first = person.adjourn(
            "-a", "--pause-on-approval", "deploy", "--output", "json", expect=10
        ).doc
        assert person.processes() == {}
        assert person.lines("log.txt") == []
        second = person.adjourn(
            "-c", first["checkpoint_id"], "--approve", "tc_1", "--output", "json", expect=10
        ).doc
        assert person.lines("log.txt") == ["applied"]
        assert second["pause_reason"]["type"] == "input_required"
        third = person.adjourn(
            "-c", second["checkpoint_id"], "yes, proceed", "--output", "json", expect=0
        ).doc
        runs = person.runs(first["task_id"])
        shown = person.adjourn("show", first["task_id"]).out
    assert third["outcome"] == "completed"
    assert first["task_id"] == second["task_id"] == third["task_id"]
    assert len({first["checkpoint_id"], second["checkpoint_id"], third["checkpoint_id"]}) == 3
    assert [message["role"] for message in person.sent()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert person.sent()[-1]["content"] == "yes, proceed"
    assert out_of_order(person.sent()) is None
    # Nobody knows what a server of one's own costs
    spent = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "cost": None}
    assert [run["usage"] for run in runs] == [spent] * 3
    assert third["usage"] == {
        "run": spent,
        "task": spent | {"input_tokens": 300, "output_tokens": 30},
    }
    assert "used 100 tokens in, 10 out; all runs together 300 tokens in, 30 out" in shown


def test_a_pause_is_one_json_object_with_the_keys_of_the_rfc(tmp_path: Path) -> None:
    """A-R14 A-R24 A-R25 A-R26 A-R31 A-R33 A-R34 A-R35 A-R49 A-R54."""
    turn = use(
        command("terraform apply", "tc_1"),
        text="I'm about to apply the terraform changes to production.",
    )
    with desk(tmp_path, turn) as person:
        paused = person.agent_run(expect=10)
    assert paused["outcome"] == "paused"
    assert paused["pause_reason"]["type"] == "tool_approval_required"
    call = {"id": "tc_1", "name": "run_command", "arguments": {"command": "terraform apply"}}
    assert paused["pause_reason"]["pending_tool_calls"] == [call]
    assert paused["agent_message"] == "I'm about to apply the terraform changes to production."
    assert paused["resume_hint"] == f"adjourn -c {paused['checkpoint_id']} --approve tc_1"
    assert paused["session_id"]
    assert paused["paused_at"]
    for place in ("session/pause.json", f"session/{paused['task_id']}/pause.json"):
        assert msgspec.json.decode((person.store / place).read_bytes()) == paused


def test_a_completion_is_one_json_object_with_the_keys_of_the_rfc(tmp_path: Path) -> None:
    """A-R22 A-R28 A-R29 A-R30."""
    with desk(tmp_path, use(command("true", "tc_1")), finish("Deployment complete.")) as person:
        done = person.as_told(person.agent_run(expect=10), expect=0)
    assert {key: done[key] for key in ("outcome", "final_message", "steps_taken")} == {
        "outcome": "completed",
        "final_message": "Deployment complete.",
        "steps_taken": 2,
    }
    assert done["checkpoint_id"]
    assert done["session_id"]


def test_words_without_a_call_pause_with_a_type_of_their_own(tmp_path: Path) -> None:
    """A-R11 A-R15 A-R16 A-R17 A-R27."""
    with desk(tmp_path, say("Which region?"), finish()) as person:
        paused = person.agent_run(expect=10)
        assert paused["pause_reason"]["type"] == "input_required"
        assert paused["pause_reason"]["pending_tool_calls"] == []
        assert paused["agent_message"] == "Which region?"
        assert (
            person.resumed(paused, "eu-west-1", expect=0)["final_message"] == "Deployment complete."
        )
    offered = {tool["function"]["name"] for tool in person.model.asked[0].body["tools"]}
    assert offered.isdisjoint({"ask", "request_human_input"})


def test_without_the_flag_all_tools_run_and_words_are_the_end(tmp_path: Path) -> None:
    """A-R78 A-R81."""
    with desk(tmp_path, use(command("echo ran >> log.txt")), say("Done.")) as person:
        done = person.json("run", "deploy it", expect=0)
        assert done["final_message"] == "Done."
        assert person.lines("log.txt") == ["ran"]
        asked = person.model.asked[0].body["tools"]
    assert "finish" not in {tool["function"]["name"] for tool in asked}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_after_a_resume_the_request_begins_as_the_one_before_it(
    tmp_path: Path, provider: str
) -> None:
    """Seed 001 is about money: what was sent before is found in the provider's cache."""
    arguments = '{"timeout": 5.0,   "command": "echo ran"}'
    call = ToolUse(name="run_command", arguments=arguments, id="tc_1")
    script = [use(call, text="I run it."), Turn(text="Done.", usage=Usage(input=300, cached=200))]
    env = {"ADJOURN_AGENT_MODEL": f"{provider}:scripted"}
    with desk(tmp_path, *script) as person:
        if provider == "anthropic":
            env["ADJOURN_AGENT_BASE_URL"] = person.model.url
        paused = person.agent_run("--on-text", "complete", expect=10, env=env)
        done = person.resumed(paused, "--approve", "tc_1", expect=0, env=env)
        before, after = (request.body for request in person.model.asked)
        shown = person.adjourn("show", done["task_id"]).out
    count = len(before["messages"])
    fixed = ("tools", "system", "model")
    first, second = (
        msgspec.json.encode([{key: body.get(key) for key in fixed}, body["messages"][:count]])
        for body in (before, after)
    )
    assert first == second
    assert len(after["messages"]) > count
    # Anthropic caches only what it is told to
    assert ("cache_control" in after) == (provider == "anthropic")
    assert done["usage"]["run"]["cached_input_tokens"] == 200
    assert "300 tokens in (200 cached)" in shown


def test_any_model_that_pydantic_ai_knows_can_be_asked(tmp_path: Path) -> None:
    """One whose package is missing is named with what to install, before anything is lost."""
    with desk(tmp_path, say("Hello.")) as person:
        person.environment.pop("ADJOURN_AGENT_BASE_URL")
        own = {"OLLAMA_BASE_URL": person.model.openai, "OLLAMA_API_KEY": "none"}
        done = person.json("run", "--model", "ollama:scripted", "say hello", expect=0, env=own)
        assert done["final_message"] == "Hello."
        failed = person.json("run", "--model", "groq:any", "say hello", expect=1)["error"][
            "message"
        ]
        assert "groq:any needs what is not installed" in failed
        assert "pip install" in failed
        unknown = person.json("run", "--model", "nobody:any", "say hello", expect=1)["error"][
            "message"
        ]
        assert "nobody:any cannot be used" in unknown
        both = ("--model", "groq:any", "--base-url", person.model.openai)
        assert (
            "base_url is only for openai and anthropic"
            in person.adjourn("run", *both, "say hello", expect=2).err
        )


def test_verbose_tells_of_steps_and_calls_as_they_happen_and_of_no_secret(tmp_path: Path) -> None:
    """A-R32: on stderr, and without the flag nothing."""
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    script = [use(ToolUse(name="list_files")), use(command(f"echo {secret}", "tc_1")), finish()]
    with desk(tmp_path, *script) as person:
        words = ("run", "--pause-on-approval", "--output", "json", "deploy it")
        assert person.adjourn(*words, expect=10).err == ""
        told = person.adjourn(*words, "--verbose", expect=10)
        resumed = ("resume", told.doc["task_id"], "--approve-all", "--output", "json")
        ran = person.adjourn(*resumed, "--verbose", expect=0).err
    first, *rest = told.err.splitlines()
    assert first == "adjourn: step 1"
    assert "adjourn: call call_1_1 list_files: only reads, and runs" in rest
    assert "adjourn: step 2" in rest
    assert any(
        line.startswith("adjourn: call tc_1 waits for a person: run_command") for line in rest
    )
    assert "adjourn: call tc_1 is done, exit code 0: run_command" in ran
    assert "adjourn: step 3" in ran
    assert secret not in told.err + ran

"""Models that talk nonsense and servers that falter: a sentence, and never a lost transcript."""

import contextlib
import socket
import time
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.agent.desk import command, desk, finish, out_of_order, say, use
from tests.e2e.shell import until
from tests.model.script import Fault, ToolUse, Turn


def test_nonsense_of_a_model_is_answered_and_the_work_goes_on(tmp_path: Path) -> None:
    """An unknown tool, arguments that are no JSON or do not fit, and forty calls at once.

    Nobody is asked about any of it.
    """
    nonsense = (
        ToolUse(name="launch_rocket", id="unknown"),
        ToolUse(name="run_command", arguments='{"command": "ech', id="broken"),
        ToolUse(name="run_command", arguments={"cmd": "ls"}, id="other"),
        ToolUse(name="read_file", arguments={"path": "../../etc/passwd"}, id="outside"),
        ToolUse(name="edit_file", arguments={"path": "none", "old": "a", "new": "b"}, id="missing"),
    )
    forty = use(*(ToolUse(name="list_files", id=f"look_{number}") for number in range(40)))
    with desk(tmp_path, use(*nonsense), forty, finish()) as person:
        person.agent_run(expect=0)
        results = person.results()
    assert "there is no tool launch_rocket" in results["unknown"]
    assert "not a JSON object" in results["broken"]
    assert "command" in results["other"]
    assert "outside of the workspace" in results["outside"]
    assert "No such file" in results["missing"]
    assert len(results) == 45
    assert out_of_order(person.sent()) is None


def test_nonsense_beside_a_call_that_waits_is_answered_when_that_is_decided(tmp_path: Path) -> None:
    calls = (
        ToolUse(name="launch_rocket", id="bad"),
        command("echo ran", "good"),
        ToolUse(name="list_files", id="look"),
    )
    with desk(tmp_path, use(*calls), finish()) as person:
        person.as_told(person.agent_run(expect=10), expect=0)
    assert list(person.results()) == ["bad", "good", "look"]
    assert person.results()["good"] == "ran"


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(status=429, retry_after="0"), Fault(drop_after=2)], ids=repr
)
def test_a_fault_that_passes_is_waited_out(tmp_path: Path, fault: Fault) -> None:
    with desk(tmp_path, Turn(text="Hello.", faults=(fault,))) as person:
        assert person.json("run", "say hello", expect=0)["final_message"] == "Hello."
        assert len(person.transcript(person.json("tasks")["tasks"][0]["task_id"])) == 2


def test_a_package_that_is_missing_is_named_and_the_work_goes_on_when_it_is_there(
    tmp_path: Path,
) -> None:
    """A core install has neither of them: it says what to install, and begins nothing anew."""
    (tmp_path / "core").mkdir()
    core = {"PYTHONPATH": str(tmp_path / "core")}
    missing = tmp_path / "core" / "pydantic_ai.py"
    missing.write_text('raise ModuleNotFoundError("no", name="pydantic_ai")')
    with desk(tmp_path, say("Hello."), finish()) as person:
        failed = person.json("run", "say hello", expect=1, env=core)
        assert (
            failed["error"]["message"]
            == "the agent needs what is not installed: pydantic_ai; pip install 'adjourn[agent]'"
        )
        person.agent_run(expect=1, env=core)
        missing.rename(tmp_path / "away.py")
        paused = person.agent_run(expect=10, env=core)
        (tmp_path / "away.py").rename(missing)
        stuck = person.resumed(paused, "Who are you?", expect=10, env=core)
        assert "pip install 'adjourn[agent]'" in stuck["agent_message"]
        missing.unlink()
        assert person.as_told(stuck, expect=0)["final_message"] == "Deployment complete."


def test_a_server_whose_package_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "mcp.py").write_text('raise ModuleNotFoundError("no", name="mcp")')
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"shop": {"command": "shop"}}}')
    with desk(tmp_path, say("Hello.")) as person:
        failed = person.json(
            "run",
            "--mcp",
            "mcp.json",
            "say hello",
            expect=1,
            env={"PYTHONPATH": str(tmp_path / "core")},
        )
        assert (
            failed["error"]["message"]
            == "the MCP server shop needs what is not installed: mcp; pip install 'adjourn[mcp]'"
        )


@pytest.mark.parametrize("flags", [("--pause-on-approval",), ()], ids=["gated", "ungated"])
def test_what_would_lose_work_pauses_and_what_would_lose_nothing_fails(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """A-R3 A-R11 A-R22 A-R29, part 2 row 30: with or without the flag."""
    denied = Fault(status=401)
    ran = use(command("echo ran >> log.txt", "tc_1"))
    first = msgspec.structs.replace(ran, faults=(denied,))
    away = Turn(text="Hello.", faults=(denied, Fault(status=529), Fault(status=500)))
    once = ("--option", "tries=1", "deploy it")
    with desk(tmp_path, first, away) as person:
        failed = person.json("run", *flags, *once, expect=1)
        assert failed["error"]["message"] == "the model's server says 401: scripted fault 401"
        stuck = person.json("run", *flags, *once, expect=10)
        if flags:
            stuck = person.resumed(stuck, "--approve", "tc_1", expect=10)
        for status in (401, 529, 500):
            assert (stuck["state"], stuck["pause_reason"]["type"]) == ("paused", "unavailable")
            assert f"the model's server says {status}" in stuck["agent_message"]
            (listed,) = person.json("inbox")["paused"]
            assert listed["task_id"] == stuck["task_id"]
            assert listed["pause_reason"] == "unavailable"
            shown = person.adjourn("inbox").out
            assert "unavailable" in shown
            assert f"Go on with: adjourn resume {stuck['task_id'][:8]}\n" in shown
            stuck = person.as_told(stuck, expect=10 if flags or status != 500 else 0)
        assert (stuck.get("agent_message") or stuck["final_message"]) == "Hello."
        assert person.lines("log.txt") == ["ran"]
        assert person.json("inbox")["paused"] == []


def test_a_server_that_is_not_there_is_told_in_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    with contextlib.closing(socket.socket()) as unused, desk(tmp_path) as person:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        stuck = person.agent_run("--base-url", nowhere, "--option", "tries=1", expect=10)
        assert "the model's server cannot be reached" in stuck["agent_message"]
        assert stuck["pause_reason"]["type"] == "unavailable"
        assert [message["role"] for message in person.transcript(stuck["task_id"])] == ["user"]


def test_a_limit_pauses_the_work_and_can_be_raised_by_the_hint_as_it_is_printed(
    tmp_path: Path,
) -> None:
    """A-R29 A-R50, part 2 rows 30 and 40."""
    priced = ("--option", "input_price=1000", "--option", "output_price=1000")
    script = [use(command("true")), use(command("true")), use(command("true")), say("Done.")]
    with desk(tmp_path, *script) as person:
        paused = person.json("run", "--max-tokens", "100", "say hello", expect=10)
        assert paused["agent_message"] == "it used 110 tokens, and it may use 100"
        assert paused["pause_reason"]["type"] == "limit_reached"
        hint = f"adjourn resume {paused['task_id']} --max-tokens 210"
        assert f"Paused. Resume with: {hint}\n" in person.adjourn("show", paused["task_id"]).out
        (listed,) = person.json("inbox")["paused"]
        assert listed["resume_hint"] == hint
        again = person.as_told(listed, expect=10)
        assert again["agent_message"] == "it used 220 tokens, and it may use 210"
        assert person.as_told(again, expect=0)["final_message"] == "Done."

        other = person.json("run", "--max-tokens", "100", "say hello", expect=10)
        done = person.json("resume", other["task_id"], "--max-tokens", "none", expect=0)
        assert done["final_message"] == "Done."

        costly = person.json("run", *priced, "--max-cost", "0.2", "say hello", expect=10)
        assert costly["agent_message"] == "it cost $0.22, and it may cost $0.2"
        assert costly["resume_hint"].endswith(" --max-cost 0.42")
        assert person.as_told(costly, expect=0)["usage"]["task"]["cost"] == "0.44"


def test_steps_count_since_the_last_resume_and_a_resume_may_have_more(tmp_path: Path) -> None:
    """A-R50, part 2 row 40: the number of cycles has no limit."""
    with desk(tmp_path, *[use(command("true"))] * 7, say("Done.")) as person:
        paused = person.json("run", "--max-steps", "2", "say hello", expect=10)
        assert "it took 2 steps, and --max-steps allows no more" in paused["agent_message"]
        paused = person.as_told(paused, expect=10)
        assert (len(person.model.asked), paused["pause_reason"]["type"]) == (4, "limit_reached")
        resumed = person.json("resume", paused["task_id"], "--max-steps", "9", expect=0)
        assert resumed["final_message"] == "Done."
        assert (
            "limits changed  (max_steps 9)"
            in person.adjourn("show", paused["task_id"], "--full").out
        )
        command_line = person.json("run", "--", "true")["task_id"]
        refused = person.adjourn("resume", command_line, "--max-steps", "9", expect=2)
        assert "--max-steps is a limit of the built-in agent" in refused.err


def test_the_same_failing_call_five_times_in_a_row_pauses(tmp_path: Path) -> None:
    broken = ToolUse(name="finish", arguments={})
    looks = ToolUse(name="list_files")
    with desk(tmp_path, use(command("true"), text="Begun."), *[use(broken, looks)] * 20) as person:
        paused = person.resumed(person.agent_run(expect=10), "--approve-all", expect=10)
        assert paused["agent_message"] == "the same call failed 5 times in a row"
        assert paused["pause_reason"]["type"] == "limit_reached"
        assert len(person.model.asked) == 6
        person.as_told(paused, expect=10)
        assert len(person.model.asked) == 11


def test_an_interrupt_pauses_at_once_while_the_model_thinks(tmp_path: Path) -> None:
    """Row 23 of part 2: SIGTERM is the first Ctrl+C."""
    with desk(tmp_path, Turn(text="Hello.", delay=30)) as person:
        began = time.monotonic()
        process = person.start("run", "--pause-on-approval", "say hello", "--output", "json")
        until(lambda: bool(person.model.requests), what="the model is asked")
        process.terminate()
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 10, out
        assert time.monotonic() - began < 20
        task = person.json("tasks")["tasks"][0]["task_id"]
        assert [(run["state"], run["resumable"]) for run in person.runs(task)] == [("paused", True)]


def test_a_command_that_takes_too_long_is_stopped_and_the_model_told(tmp_path: Path) -> None:
    with desk(
        tmp_path, use(command("echo begun; sleep 60", "slow", timeout=0.3)), finish()
    ) as person:
        person.as_told(person.agent_run(expect=10), expect=0)
    assert person.results()["slow"].startswith("begun\n[")
    assert "it took too long and was stopped" in person.results()["slow"]


def test_a_call_that_is_interrupted_has_failed_and_is_never_run_by_its_old_approval(
    tmp_path: Path,
) -> None:
    with desk(tmp_path, use(command("echo ran >> log.txt; sleep 60", "slow")), finish()) as person:
        paused = person.agent_run(expect=10)
        process = person.start("resume", paused["task_id"], "--approve", "slow", "--output", "json")
        until(lambda: person.lines("log.txt") == ["ran"], what="the tool runs")
        process.terminate()
        assert process.wait(20) == 10, process.communicate()
        close(process)
        assert person.json("resume", paused["task_id"], expect=0)["state"] == "succeeded"
        assert person.lines("log.txt") == ["ran"]
    assert "interrupted" in person.results()["slow"]


def close(process: object) -> None:
    """Close the pipes of a process that has left."""
    for name in ("stdout", "stderr"):
        getattr(process, name).close()


def test_bad_words_at_the_command_line_start_nothing(tmp_path: Path) -> None:
    """A-R60."""
    with desk(tmp_path) as person:
        bad: list[tuple[list[str], str]] = [
            (["run", "--model", "gpt", "say hello"], "openai:NAME or anthropic:NAME"),
            (["run", "--max-steps", "many", "say hello"], "max_steps"),
            (["run", "--option", "colour=red", "say hello"], "no setting colour"),
            (["run", "--option", "model", "say hello"], "KEY=VALUE"),
            (["run", "--on-text", "sing", "say hello"], "on_text"),
            (["run", "--mcp", "none.json", "say hello"], "No such file"),
            (["run", "  "], "the prompt is empty"),
            (["run", "--model", "openai:x", "--", "ls"], "an agent takes one prompt"),
            (["run", "--pause-on-aproval", "say hello"], "no such option"),
        ]
        for words, sentence in bad:
            assert sentence in person.adjourn(*words, expect=2).err, words
        assert person.model.requests == []
        assert person.json("tasks")["tasks"] == []


def test_the_agents_own_processes_do_nothing_for_a_person(tmp_path: Path) -> None:
    with desk(tmp_path) as person:
        assert "a part of adjourn's own" in person.adjourn("_drive", "agent", expect=2).err
        assert "a part of adjourn's own" in person.adjourn("_tool", "x.tc_1", expect=2).err


@pytest.mark.parametrize("runner", ["agent", "claude", "codex"])
def test_what_earlier_versions_recorded_still_starts_a_driver(runner: str, tmp_path: Path) -> None:
    """Tasks of theirs have `adjourn _claude` in their records."""
    with desk(tmp_path) as person:
        assert "a part of adjourn's own" in person.adjourn(f"_{runner}", expect=2).err


def test_a_task_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    with desk(tmp_path, say("Which one?"), finish()) as person:
        manifest = person.agent_run(expect=10)
        with contextlib.closing(apsw.Connection(str(person.store / "adjourn.db"))) as database:
            body = database.execute("SELECT body FROM task_spec").get
            earlier = body.replace(b'"_drive","agent"', b'"_agent"')
            assert earlier != body
            database.execute("UPDATE task_spec SET body = ?", (earlier,))
        person.resumed(manifest, "that one", expect=0)


def test_a_project_cannot_set_up_the_agent(tmp_path: Path) -> None:
    with desk(tmp_path, say("Done.")) as person:
        (person.store / "config.toml").write_text('[agent]\nbase_url = "http://127.0.0.1:9/"\n')
        assert person.json("run", "say hello", expect=0)["final_message"] == "Done."
        shown = person.json("config")["agent"]
    origins = {each["key"]: each["origin"] for each in shown}
    assert origins["base_url"] == "ADJOURN_AGENT_BASE_URL"


def test_settings_say_where_they_come_from(tmp_path: Path) -> None:
    with desk(tmp_path) as person:
        config = tmp_path / ".config" / "adjourn" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text('[agent]\nmodel = "anthropic:mine"\nmax_steps = 7\n')
        shown = {
            each["key"]: each for each in person.json("config", "--option", "tries=2")["agent"]
        }
        assert (shown["model"]["value"], shown["model"]["origin"]) == (
            "openai:scripted",
            "ADJOURN_AGENT_MODEL",
        )
        assert (shown["max_steps"]["value"], shown["max_steps"]["origin"]) == (7, str(config))
        assert (shown["tries"]["value"], shown["tries"]["origin"]) == ("2", "the command line")
        assert shown["stream"]["origin"] == "default"
        assert "max_steps" in person.adjourn("config").out
        config.write_text("[agent]\ncolour = 1\n")
        assert "`[agent] colour` is unknown" in person.adjourn("config", expect=2).err

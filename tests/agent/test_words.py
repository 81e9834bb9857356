"""What an agent's words are, how its work ends, and what is left of it.

The transcript, its forks and restarts.
"""

from pathlib import Path

import pytest

from tests.agent.desk import command, desk, finish, out_of_order, say, use
from tests.e2e.terminal import Terminal
from tests.model.script import Fault, ToolUse, Turn


def test_a_person_can_accept_an_agents_words_without_a_process(tmp_path: Path) -> None:
    """Row 1 of part 2: completion is reachable."""
    with desk(tmp_path, say("All is deployed.")) as person:
        paused = person.agent_run(expect=10)
        done = person.resumed(paused, "--accept", expect=0)
        assert (done["outcome"], done["final_message"]) == ("completed", "All is deployed.")
        assert len(person.runs(paused["task_id"])) == 1


def test_words_can_be_the_end_with_the_gate_still_on(tmp_path: Path) -> None:
    """Row 1 of part 2."""
    with desk(tmp_path, use(command("true", "tc_1")), say("Done.")) as person:
        paused = person.agent_run("--on-text", "complete", expect=10)
        assert person.resumed(paused, "--approve", "tc_1", expect=0)["final_message"] == "Done."


def test_questions_are_asked_by_a_tool_only_in_the_clarification_profile(tmp_path: Path) -> None:
    """Row 4 of part 2."""
    question = ToolUse(
        name="ask", arguments={"question": "Where?", "choices": ["eu", "us"]}, id="q"
    )
    with desk(tmp_path, use(question), finish()) as person:
        (person.store / "supervision.yaml").write_text("linger: 0s\n")
        paused = person.agent_run("--option", "clarify=true", expect=10)
        assert paused["pause_reason"]["questions"] == [
            {"question_id": "q", "text": "Where?", "choices": ["eu", "us"]}
        ]
        person.resumed(paused, "eu", expect=0)
    assert person.results() == {"q": "eu"}


def test_a_conversation_reads_like_one_and_can_be_had_as_messages(tmp_path: Path) -> None:
    with desk(
        tmp_path, use(command("echo '\x1b[2Jhidden'", "tc_1"), text="Let me see."), finish("Seen.")
    ) as person:
        task = person.as_told(person.agent_run(expect=10), expect=0)["task_id"]
        shown = person.adjourn("show", task, "--transcript").out
        messages = person.transcript(task)
        usage = person.json("show", task, "--transcript")["usage"]
    assert shown.startswith(
        "person\n  deploy to staging\n\nmodel (scripted)\n  agent │ Let me see.\n  tc_1 run_command\n"
    )
    assert "\x1b" not in shown
    assert "result of tc_1 run_command" in shown
    assert [(message["role"], message["v"]) for message in messages] == [
        ("user", 1),
        ("assistant", 1),
        ("tool", 1),
        ("assistant", 1),
        ("tool", 1),
    ]
    assert out_of_order(messages) is None
    assert (usage["input"], usage["output"]) == (200, 20)


def test_a_task_can_be_forked_at_any_checkpoint(tmp_path: Path) -> None:
    """The RFC's checkpoints hold all that is needed (A-R4); each of them can be begun from."""
    script = [use(command("echo ran >> log.txt", "tc_1")), say("And now?"), finish("The end.")]
    with desk(tmp_path, *script) as person:
        first = person.agent_run(expect=10)
        second = person.resumed(first, "--approve", "tc_1", expect=10)
        person.resumed(second, "go on", expect=0)
        fork = person.json("fork", first["task_id"], "--at", second["checkpoint_id"], expect=10)
        assert fork["task_id"] != first["task_id"]
        assert fork["agent_message"] == "And now?"
        assert person.resumed(fork, "another way", expect=0)["final_message"] == "The end."
        assert [message["content"] for message in person.sent() if message["role"] == "user"][
            -1
        ] == "another way"
        gated = person.json("fork", first["task_id"], "--at", first["checkpoint_id"], expect=10)
        assert [call["name"] for call in gated["pause_reason"]["pending_tool_calls"]] == [
            "run_command"
        ]
        assert person.lines("log.txt") == ["ran"]
        person.adjourn("fork", first["task_id"], "--at", "zzz", expect=3)
        other = person.json("run", "--", "true")["task_id"]
        assert "has no conversation" in person.adjourn("fork", other, expect=2).err


def test_a_restart_begins_anew_and_keeps_what_was(tmp_path: Path) -> None:
    with desk(tmp_path, say("And now?"), finish("The end.")) as person:
        first = person.agent_run(expect=10)
        again = person.json("restart", first["task_id"], expect=10)
        assert again["session_id"] != first["session_id"]
        assert [message["role"] for message in person.sent()] == ["user"]
        assert person.resumed(again, "go on", expect=0)["steps_taken"] == 2
        assert len(person.transcript(first["task_id"])) == 5
        assert len(person.json("show", first["task_id"], "--transcript", "--full")["messages"]) == 7


def test_a_run_goes_on_with_all_that_it_was_started_with(tmp_path: Path) -> None:
    """A-R4, and row 1 of part 2.

    Flag, limits and model are inherited; nothing of the old process is needed.
    """
    with desk(tmp_path, use(command("true", "a")), use(command("true", "b")), say("no")) as person:
        paused = person.agent_run("--max-tokens", "220", expect=10)
        other = {
            "ADJOURN_AGENT_MODEL": "anthropic:other",
            "ADJOURN_AGENT_BASE_URL": "http://127.0.0.1:9/",
        }
        again = person.resumed(paused, "--approve", "a", expect=10, env=other)
        assert [call["id"] for call in again["pause_reason"]["pending_tool_calls"]] == ["b"]
        ended = person.resumed(again, "--approve", "b", expect=10, env=other)
        assert ended["agent_message"] == "it used 220 tokens, and it may use 220"


def test_on_a_terminal_the_words_come_as_they_are_said_and_do_no_harm(tmp_path: Path) -> None:
    words = "Let me \x1b[31mlook\x1b[0m around."
    with desk(tmp_path, use(command("ls", "tc_1"), text=words), finish("All is there.")) as person:
        with Terminal(person, "run", "--pause-on-approval", "say hello") as terminal:
            assert terminal.ends() == 10
        (said,) = [
            number
            for number, line in enumerate(terminal.lines)
            if line == "out │ Let me \\u{1b}[31mlook\\u{1b}[0m around."
        ]
        call, pause = terminal.lines[said + 1 : said + 3]
        assert call == "err │ adjourn: call tc_1 waits for a person: run_command: ls"
        assert pause.startswith("Paused:")
        task = person.json("tasks")["tasks"][0]["task_id"]
        assert person.adjourn("logs", task).out == f"{words}\n"  # to a file, byte for byte
        assert person.adjourn("resume", task, "--approve-all").out == "All is there.\n"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_conversation_that_is_too_long_is_summarised_and_kept_whole(
    tmp_path: Path, provider: str
) -> None:
    """Older turns are summarised by the model; a resume goes on with the summary."""
    too_long = Fault(status=400, too_long=True)
    looks = [use(ToolUse(name="list_files"), text=f"Look {number}.") for number in range(4)]
    script = [*looks, Turn(text="Which region?", faults=(too_long,)), say("Done.")]
    settings = {"ADJOURN_AGENT_MODEL": f"{provider}:scripted"}
    with desk(tmp_path, *script) as person:
        if provider == "anthropic":
            settings["ADJOURN_AGENT_BASE_URL"] = person.model.url
        paused = person.agent_run(expect=10, env=settings)
        messages = person.transcript(paused["task_id"])
        (summary,) = [each for each in messages if each["role"] == "summary"]
        # The scripted model answers the request for a summary with its first turn
        assert (summary["text"], summary["v"]) == ("Look 0.", 2)
        before = messages[: messages.index(summary)]
        assert [each["text"] for each in before if each["role"] == "assistant"][:4] == [
            "Look 0.",
            "Look 1.",
            "Look 2.",
            "Look 3.",
        ]
        asked = [str(request.body["messages"]) for request in person.model.asked]
        tail = next(text for text in asked if "in your own words" in text)
        assert "deploy to staging" in tail
        assert "Look 0." in tail
        assert "Look 1." not in tail
        shown = person.adjourn("show", paused["task_id"], "--transcript").out
        assert f"in the place of the first {summary['covers']} messages" in shown
        person.resumed(paused, "eu", expect=10, env=settings)
        assert "in your own words" in str(person.model.asked[-1].body["messages"])


def test_with_compaction_off_a_conversation_that_is_too_long_pauses(tmp_path: Path) -> None:
    """Part 2 row 30."""
    full = Turn(text="Done.", faults=(Fault(status=400, too_long=True),))
    with desk(tmp_path, use(ToolUse(name="list_files")), full) as person:
        paused = person.json("run", "--option", "compact=false", "say hello", expect=10)
        assert paused["pause_reason"]["type"] == "limit_reached"
        assert "longer than the model takes, and compact is off" in paused["agent_message"]
        assert person.as_told(paused, expect=0)["final_message"] == "Done."


def test_a_person_can_say_more_to_an_agent_that_was_done_in_the_same_task(tmp_path: Path) -> None:
    """A-R40 A-R46, part 2 row 34; and to one that a limit has stopped."""
    looks = use(ToolUse(name="list_files"))
    with desk(tmp_path, finish("Deployed."), say("Rolled back."), looks, say("Fine.")) as person:
        first = person.agent_run("--max-steps", "1", expect=0)
        task = first["task_id"]
        assert "there is nothing to resume" in person.adjourn("resume", task, expect=4).err
        second = person.resumed(first, "Roll it back.", expect=10)
        assert second["agent_message"] == "Rolled back."
        assert (second["task_id"], second["session_id"]) == (task, first["session_id"])
        assert person.sent()[-1] == {"role": "user", "content": "Roll it back."}
        limited = person.resumed(second, "Look again.", expect=10)
        assert limited["pause_reason"]["type"] == "limit_reached"
        third = person.resumed(limited, "Say how it is.", expect=10)
        assert third["agent_message"] == "Fine."
        said = [each["content"] for each in person.sent() if each["role"] == "user"]
        assert said == ["deploy to staging", "Roll it back.", "Look again.", "Say how it is."]
        assert out_of_order(person.sent()) is None
        shown = person.adjourn("show", task, "--full").out
        assert "task continued" in shown
        forked = person.json("fork", task, "What else?", "--at", first["checkpoint_id"], expect=10)
        assert forked["task_id"] != task
        assert [each["content"] for each in person.sent() if each["role"] == "user"] == [
            "deploy to staging",
            "What else?",
        ]


def test_a_text_never_comes_between_calls_and_their_results(tmp_path: Path) -> None:
    """A-R19."""
    with desk(tmp_path, use(command("echo ran", "tc_1")), finish()) as person:
        paused = person.agent_run(expect=10)
        refused = person.adjourn("fork", paused["task_id"], "Do it.", expect=2).err
        assert "between calls and their results" in refused

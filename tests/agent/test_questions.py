"""What the built-in agent asks, and what its tools do."""

from pathlib import Path

import msgspec

from tests.agent.desk import command, desk, finish, say, use
from tests.e2e.shell import until
from tests.model.script import ToolUse

QUESTION = ToolUse(name="ask", arguments={"question": "Where to?"}, id="q")
WRITES = ToolUse(name="write_file", arguments={"path": "a.md", "content": "x"}, id="w")
PROFILE = ("--option", "clarify=true")


def test_a_quick_answer_reaches_the_agent_before_it_leaves(tmp_path: Path) -> None:
    """B-R1, B-R5, part 2 row 5: with a request file meanwhile, and no checkpoint."""
    with desk(tmp_path, use(QUESTION), finish("In eu.")) as person:
        running = person.start("run", "--pause-on-approval", *PROFILE, "deploy to staging")
        needed = person.store / "clarifications"
        until(lambda: any(needed.glob("*.needed.yaml")), what="it asks")
        (ask,) = person.inbox()
        person.adjourn("answer", ask["id"], "eu")
        assert running.wait(60) == 0
        running.communicate()
        assert len(person.runs(ask["task_id"])) == 1
        assert person.results() == {"q": "eu"}
        assert not (person.store / "checkpoints").exists()


def test_an_agent_that_gets_no_answer_leaves_a_checkpoint(tmp_path: Path) -> None:
    """B-R6, B-R11 to B-R14, B-R16, B-R17, B-R21: what it did, what it waits for, how to go on."""
    with desk(tmp_path, use(WRITES), use(QUESTION), finish("In eu.")) as person:
        (person.store / "supervision.yaml").write_text("linger: 0.2\n")
        paused = person.agent_run(*PROFILE, expect=10)
        paused = person.resumed(paused, "--approve-all", expect=10)
        task = paused["task_id"]
        response = person.store / "clarifications" / f"{task}.response.yaml"
        left = msgspec.json.decode(
            (person.store / "checkpoints" / f"{task}.checkpoint.json").read_bytes()
        )
        assert left["phase"] == "waiting_clarification"
        assert left["workState"]["completed"] == ["write_file a.md"]
        assert left["workState"]["inProgress"] == ["deploy to staging"]
        assert left["workState"]["blocked"] == ["Where to?"]
        assert left["context"]["filesCreated"] == ["a.md"]
        assert left["metadata"]["tokensBurned"] > 0
        assert left["resumeInstructions"]["readClarificationFrom"] == str(response)
        response.write_text(
            f"agent_id: {task}\nresponses:\n  - question_id: q\n    answer: eu\nresume_signal: true\n"
        )
        assert person.json("resume", task)["outcome"] == "completed"
        assert person.results()["q"] == "eu"


def test_what_a_tool_of_the_agent_asks_is_told_behind_the_answer_to_its_own_words(
    tmp_path: Path,
) -> None:
    """B-R32, B-R34, A-R46: each is a message of its own, and none is lost."""
    turns = [
        use(command('adjourn ask "Which region?"; true', "tc_1")),
        say("Shall I go on?"),
        finish("Gone on."),
    ]
    with desk(tmp_path, *turns) as person:
        paused = person.agent_run(expect=10)
        waiting = person.resumed(paused, "--approve-all", expect=10)
        region, words = waiting["asks"]
        person.adjourn("answer", region["id"], "eu")
        person.adjourn("answer", words["id"], "yes")
        assert person.json("resume", waiting["task_id"])["outcome"] == "completed"
        said = [message["content"] for message in person.sent() if message["role"] == "user"]
        assert said[:2] == ["deploy to staging", "yes"]
        assert said[2].startswith("## RESUME FROM CLARIFICATION\n")
        assert "- Which region?: eu" in said[2]


def test_a_tool_that_asks_again_gets_the_open_question_and_then_its_answer_once(
    tmp_path: Path,
) -> None:
    """B-R45: what was told is not an answer to the next question of the same words."""
    asks = 'adjourn ask "Which region?"; true'
    turns = [use(command(asks)), use(command(asks)), say("1"), use(command(asks)), say("2")]
    with desk(tmp_path, *turns) as person:
        waiting = person.json("run", "deploy to staging", expect=10)
        assert len(waiting["asks"]) == 1
        again = person.json("resume", waiting["task_id"], "eu", expect=10)
        (asked,) = again["asks"]
        assert asked["id"] != waiting["asks"][0]["id"]

"""An agent whose tools start tasks of their own."""

from pathlib import Path

from adjourn.core.outcome import Completed, Exit, Outcome, Standing, Waits
from adjourn.runners import find_runner
from tests.agent.desk import command, desk, say, use
from tests.e2e.shell import until
from tests.unit.test_command_runner import CHILD, CHILD_DONE, NOTHING


def test_an_agent_whose_child_waits_is_waiting_and_is_told_how_it_ended(tmp_path: Path) -> None:
    """A-R3, A-R56, A-R91: it is not done while what it started waits for a person."""
    turns = [use(command("adjourn run -- ./approved.sh")), say("Started."), say("All is deployed.")]
    with desk(tmp_path, *turns) as person:
        person.agent("approved.sh")
        parent = person.json("run", "deploy to staging", expect=10)
        assert (parent["state"], parent["pause_reason"]["type"]) == ("waiting", "waiting_on")
        (ask,) = person.inbox()
        assert parent["waiting_on"] == [ask["task_id"]]
        person.adjourn("resume", ask["task_id"], "--approve-all")
        done = person.json("resume", parent["task_id"])
        assert done["final_message"] == "All is deployed."
        told = person.sent()[-1]
        assert told["role"] == "user"
        assert told["content"].startswith("## TASKS THAT YOU STARTED HAVE ENDED\n")
        assert f"- task {ask['task_id']} (./approved.sh)" in told["content"]
        assert told["content"].endswith("has completed: done with approved")


def test_a_child_that_waits_is_not_forgotten_when_its_agent_was_paused(tmp_path: Path) -> None:
    """A-R56: the agent goes on meanwhile, and waits for it again before it is done."""
    turns = [
        use(command("adjourn run -- ./approved.sh")),
        use(command("true")),
        say("Started."),
        say("All is deployed."),
    ]
    with desk(tmp_path, *turns) as person:
        person.agent("approved.sh")
        parent = person.json("run", "--max-steps", "1", "deploy to staging", expect=10)
        assert parent["pause_reason"]["type"] == "limit_reached"
        again = person.json("resume", parent["task_id"], "--max-steps", "9", expect=10)
        assert again["pause_reason"]["type"] == "waiting_on"
        person.adjourn("resume", again["waiting_on"][0], "--approve-all")
        assert person.json("resume", parent["task_id"])["final_message"] == "All is deployed."


def test_an_agent_that_saw_its_child_end_is_done(tmp_path: Path) -> None:
    """A-R30: `adjourn wait` has told it."""
    start = "adjourn run --output json -- ./approved.sh > child.json"
    name = '$(sed -n \'s/.*"task_id": "\\(.*\\)",/\\1/p\' child.json | head -n 1)'
    wait = f"until adjourn wait {name}; do sleep 0.2; done"
    turns = [use(command(start)), use(command(wait)), say("All is deployed.")]
    with desk(tmp_path, *turns) as person:
        person.agent("approved.sh")
        running = person.start("run", "--output", "json", "deploy to staging")
        until(lambda: bool(person.inbox()), what="the child asks")
        (ask,) = person.inbox()
        person.adjourn("resume", ask["task_id"], "--approve-all")
        assert running.wait(60) == 0, running.communicate()
        running.communicate()


def test_a_nested_agent_has_the_settings_of_the_outer_one(tmp_path: Path) -> None:
    """A-R65, A-R91"""
    # The model says the same to both
    line = "[ -e begun ] || { touch begun; adjourn run 'look around'; }"
    turns = [use(command(line)), say("Done.")]
    with desk(tmp_path, *turns) as person:
        done = person.json("run", "deploy to staging")
        assert done["outcome"] == "completed"
        assert len(person.json("tasks")["tasks"]) == 2
        assert {task["state"] for task in person.json("tasks")["tasks"]} == {"succeeded"}


def test_what_the_exit_of_a_driver_means_while_tasks_or_asks_are_open() -> None:
    """A-R21, A-R23: exit code 0 is the end only if nothing is left open."""
    runner = find_runner("claude")
    table: list[tuple[int, Standing, Outcome]] = [
        (0, NOTHING, Completed(None)),
        (0, CHILD, Waits()),
        (0, CHILD_DONE, Waits()),
        (0, Standing(open_asks=("ask-1",)), Waits()),
        (0, Standing(settled_asks=True), Completed(None)),
        (10, CHILD, Waits()),
        (10, Standing(settled_asks=True), Waits()),
    ]
    for code, standing, outcome in table:
        assert runner.meaning(Exit(code=code), standing) == outcome, (code, standing)

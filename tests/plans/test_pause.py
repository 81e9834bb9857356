"""Ctrl+C while a plan is executed, at a real terminal.

One pause, nothing else starts, and how to go on.
"""

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

import adjourn
from tests.e2e.shell import until
from tests.e2e.terminal import CTRL_C, Terminal
from tests.plans.planner import Planner, noted

pytestmark = pytest.mark.serial

PACKAGE = str(Path(adjourn.__file__).parent)
ROUNDS = 4


def interruptible(shell: Planner, *words: str) -> dict[str, object]:
    """Return a task that counts its interrupts."""
    return {"id": "work", "command": [shell.agent("interrupts.py"), *words]}


def test_ctrl_c_pauses_the_task_that_runs_and_starts_no_other(shell: Planner) -> None:
    """D-R1, D-R5, D-R6, D-R8, D-R9, D-R10, D-R59, D-R60: exit code 10, and exactly these lines."""
    shell.plan(noted("before"), interruptible(shell), noted("after", "work"), noted("free"))
    with Terminal(shell, "execute") as person:
        person.sees("ready")
        person.type(CTRL_C)
        assert person.ends() == 10
        said = "\n".join(person.lines)
    task = shell.task("work")
    short = task[:8]  # at a terminal, where a person reads it
    assert re.search(rf"^Paused\. Resume with: adjourn resume {short}$", said, re.MULTILINE)
    assert re.search(rf"^Restart with: adjourn restart {short}$", said, re.MULTILINE)
    assert re.search(r"^Then: adjourn execute plan\.toml$", said, re.MULTILINE)
    assert shell.lines("interrupts") == ["SIGINT"]
    assert shell.effects == ["before"]
    assert shell.states() == {
        "before": "succeeded",
        "work": "paused",
        "after": "pending",
        "free": "ready",
    }
    (run,) = shell.runs(task)
    assert (run["state"], run["pause_reason"], run["resumable"]) == (
        "paused",
        "user_interrupt",
        True,
    )
    assert shell.processes() == {}


def test_going_on_takes_an_explicit_action(shell: Planner) -> None:
    """D-R6, D-R7, D-R14, D-R17, D-R61.

    Execute alone starts nothing while a task is paused; resume, then execute, goes on.
    """
    script = "echo work >> effects; if [ -e go ]; then exit 0; fi; echo ready; sleep 300"
    shell.plan({"id": "work", "run": script}, noted("after", "work"), noted("free"))
    with Terminal(shell, "execute") as person:
        person.sees("ready")
        person.type(CTRL_C)
        assert person.ends() == 10
    again = shell.adjourn("execute", expect=10)
    assert f"Paused. Resume with: adjourn resume {shell.task('work')}" in again.out
    assert shell.effects == ["work"]
    (shell.place / "go").touch()
    shell.adjourn("resume", shell.task("work"))
    assert shell.effects == ["work", "work"]
    shell.execute()
    assert shell.effects == ["work", "work", "after", "free"]
    one, two = shell.runs(shell.task("work"))
    assert two["resumed_from_run_id"] == one["run_id"]
    assert one["created_at"] < one["ended_at"] <= two["created_at"] < two["ended_at"]


@pytest.mark.parametrize("verb", ["restart", "cancel"])
def test_a_paused_task_can_be_restarted_or_given_up(shell: Planner, verb: str) -> None:
    """D-R28, D-R32, D-R65"""
    script = "if [ -e go ]; then exit 0; fi; echo ready; sleep 300"
    shell.plan({"id": "work", "run": script}, noted("after", "work"), noted("free"))
    with Terminal(shell, "execute") as person:
        person.sees("ready")
        person.type(CTRL_C)
        assert person.ends() == 10
    (shell.place / "go").touch()
    shell.adjourn(verb, shell.task("work"))
    found = shell.execute(expect=0 if verb == "restart" else 1)
    assert found["outcome"] == ("completed" if verb == "restart" else "failed")
    assert shell.effects == (["after", "free"] if verb == "restart" else ["free"])


def test_a_second_ctrl_c_kills_at_once(shell: Planner) -> None:
    """D-R12, D-R13: the record is paused all the same, and nothing else starts."""
    shell.plan(interruptible(shell, "stubborn"), noted("free"))
    with Terminal(shell, "execute") as person:
        person.sees("ready")
        person.type(CTRL_C)
        until(lambda: shell.lines("interrupts") == ["SIGINT"], what="the first interrupt arrived")
        person.type(CTRL_C)
        assert person.ends() == 10
    (run,) = shell.runs(shell.task("work"))
    assert (run["state"], run["signal"]) == ("paused", 9)
    assert shell.states()["free"] == "ready"


def test_a_pause_from_elsewhere_stops_the_plan_too(shell: Planner) -> None:
    """D-R6: `adjourn pause TASK`, and SIGTERM as well, are pauses like any other."""
    for name, stop in (("a", "pause"), ("b", "sigterm")):
        shell.plan(
            {"id": "work", "run": f"touch {name}.asleep; sleep 300"},
            noted("free"),
            name=f"{name}.toml",
        )
        execute = shell.start("execute", f"{name}.toml")
        until((shell.place / f"{name}.asleep").exists, what="it works")
        if stop == "pause":
            shell.adjourn("pause", shell.task("work", f"{name}.toml"))
        else:
            execute.send_signal(signal.SIGTERM)
        out, _ = execute.communicate(timeout=30)
        assert execute.returncode == 10
        assert b"Paused. Resume with: adjourn resume " in out
    assert shell.effects == []


def test_ctrl_c_at_any_moment_leaves_a_plan_that_goes_on(shell: Planner) -> None:
    """D-R1, D-R6: never two tasks at once, none begun twice by itself, no process left, and in the end all is done."""
    dice = random.Random(11)
    names = [f"t{number}" for number in range(6)]
    line = "mkdir alone || exit 9; echo {0} >> effects; sleep 0.05; rmdir alone"
    shell.plan(
        *(
            {"id": name, "run": f"trap 'rmdir alone; exit 130' INT; {line.format(name)}"}
            for name in names
        )
    )
    for _ in range(ROUNDS):
        with Terminal(shell, "execute") as person:
            person.listen(dice.uniform(0.05, 0.9))
            person.type(CTRL_C)
            code = person.ends()
        assert code in {0, 10, 130, -2}, person.raw
        assert PACKAGE not in person.raw.decode(), (
            "Python's own start may complain, adjourn may not"
        )
        assert shell.processes() == {}
        for task in (
            shell.json("tasks", "--state", "paused")["tasks"] if shell.store.exists() else ()
        ):
            shell.adjourn("resume", task["task_id"])
    shell.execute()
    assert list(dict.fromkeys(shell.effects)) == names
    for name in names:
        # One may be stopped before its first line
        assert shell.effects.count(name) <= len(runs_that_began(shell, name))


def runs_that_began(shell: Planner, name: str) -> list[dict[str, object]]:
    """Return the runs of an item whose process was started."""
    return [run for run in shell.runs(shell.task(name)) if _has_begun(shell, str(run["run_id"]))]


def _has_begun(shell: Planner, run: str) -> bool:
    result = shell.store / "runs" / run / "result.json"
    return result.exists() and b'"started":false' not in result.read_bytes()


def test_the_lock_is_free_when_whoever_held_it_is_gone(shell: Planner) -> None:
    """D-R51: a killed execute leaves its task running.

    The next one sees that through, and starts nothing beside it.
    """
    shell.plan(
        {
            "id": "work",
            "run": "echo work >> effects; touch asleep; while [ ! -e go ]; do sleep 0.02; done",
        },
        noted("b"),
    )
    execute = shell.start("execute")
    until((shell.place / "asleep").exists, what="it works")
    execute.send_signal(signal.SIGKILL)
    execute.communicate(timeout=30)
    again = shell.start("execute")
    time.sleep(0.3)
    assert shell.effects == ["work"]
    (shell.place / "go").touch()
    out, err = again.communicate(timeout=30)
    assert again.returncode == 0, (out, err)
    assert shell.effects == ["work", "b"]
    assert len(shell.runs(shell.task("work"))) == 1
    assert os.listdir(shell.store / "plans")


def paused_by_a_signal(shell: Planner, *words: str) -> None:
    """Execute a plan until its task `work` sleeps, and pause it."""
    execute = shell.start("execute", *words)
    until((shell.place / "asleep").exists, what="it works")
    execute.send_signal(signal.SIGTERM)
    execute.communicate(timeout=30)
    assert execute.returncode == 10


def test_after_a_pause_workers_start_nothing_of_the_plan(shell: Planner) -> None:
    """D-R6, D-R7, D-R60: a decision queues its task, and `execute` or `resume` lets it go on."""
    asks = '[ -n "$AUTO_APPROVAL" ] || exit 90; echo asked >> effects'
    sleeps = "[ -e go ] && exit 0; touch asleep; sleep 300"
    shell.plan({"id": "ask", "run": asks}, {"id": "work", "run": sleeps})
    paused_by_a_signal(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("worker", "--once")
    assert (shell.effects, shell.state(shell.task("ask"))) == ([], "queued")
    assert shell.shown()["is_held"] is True
    said = shell.adjourn("plan", "show").out
    assert (
        "Paused: none of its tasks starts until you go on. Go on with: adjourn execute plan.toml"
        in said
    )

    (shell.place / "go").touch()
    shell.adjourn("resume", "work")
    assert shell.shown()["is_held"] is False
    shell.adjourn("worker", "--once")
    assert shell.effects == ["asked"]
    assert shell.execute()["outcome"] == "completed"


def test_an_execute_that_is_refused_leaves_nothing_queued(shell: Planner) -> None:
    """D-R6, D-R7, D-R51: else a worker would start later what somebody was refused."""
    shell.plan({"id": "work", "run": "[ -e asleep ] || exit 90; sleep 300"}, name="a.toml")
    shell.adjourn("execute", "a.toml", expect=10)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    (shell.place / "asleep").touch()
    shell.adjourn("resume", "work", "--detach")
    until(lambda: shell.state("work") == "running", what="it runs")
    shell.plan(noted("other"), name="b.toml")
    refused = shell.adjourn("execute", "b.toml", expect=4)
    assert "of a plan one task runs at a time" in refused.err
    assert shell.json("tasks", "--state", "queued")["tasks"] == []
    shell.adjourn("cancel", "work")
    until(lambda: shell.state("work") == "canceled", what="it has ended")
    shell.adjourn("worker", "--once")
    assert shell.effects == []
    assert shell.adjourn("execute", "b.toml").code == 0


def test_the_ids_of_a_plan_name_its_tasks_everywhere(shell: Planner) -> None:
    """D-R14, D-R28, D-R33, D-R49: also short ones, and a task's own id wins."""
    shell.plan({"id": "b", "run": "echo said; [ -e go ] || exit 3"}, name="one.toml")
    shell.adjourn("execute", "one.toml", expect=1)
    task = shell.task("b", "one.toml")
    (run,) = shell.runs("b")
    assert (run["task_id"], run["plan_task_id"]) == (task, "b")
    assert run["plan"] == str(shell.place / "one.toml")
    assert shell.adjourn("logs", "b").out == "said\n"
    assert shell.json("show", "b")["task_id"] == task
    (shell.place / "go").touch()
    shell.adjourn("restart", "b")
    assert shell.json("wait", "b")["tasks"][0]["state"] == "succeeded"
    shell.plan({"id": "b", "run": "exit 3"}, name="two.toml")
    shell.adjourn("execute", "two.toml", expect=1)
    both = shell.adjourn("show", "b", expect=3)
    assert task in both.err
    assert "several plans have a task b" in both.err
    assert shell.adjourn("show", "c8", expect=3).err.startswith("adjourn: no task is called c8")


def test_restart_says_when_the_plan_has_changed_and_takes_its_new_text(shell: Planner) -> None:
    """D-R28, D-R30: nothing else is done than before, unless somebody says so."""
    shell.plan({"id": "work", "run": "echo old >> effects; exit 3"})
    shell.adjourn("execute", expect=1)
    assert "something else" not in shell.adjourn("restart", "work", expect=1).err
    shell.plan({"id": "work", "run": "echo new >> effects"})
    told = shell.adjourn("restart", "work", expect=1).err
    task = shell.task("work")
    assert "says something else of it now" in told
    hint = told.partition("To do that: ")[2].strip()
    assert hint == f"adjourn restart {task} --from-plan"
    shell.line(hint)
    assert shell.effects == ["old", "old", "old", "new"]
    assert shell.execute()["outcome"] == "completed"
    assert shell.shown()["tasks"][0]["is_changed"] is False
    other = shell.json("run", "--", "true")["task_id"]
    assert "belongs to no plan" in shell.adjourn("restart", other, "--from-plan", expect=2).err

"""Calls run beside their agent: in shims of their own, in order, once, whoever is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until
from tests.e2e.test_four_eyes import Team

START = Path(__file__).parent / "start.py"


def prompt(*answers: list[str]) -> str:
    return "\n".join(json.dumps(answer) for answer in answers)


def start(shell: Shell, *answers: list[str], flags: tuple[str, ...] = ()) -> tuple[str, str]:
    """Run a task of a driver, and return its id and its state."""
    words = shell.run(
        sys.executable, str(START), str(shell.store), prompt(*answers), *flags
    ).out.split()
    return words[0], words[1]


def lines(shell: Shell, name: str) -> list[str]:
    return (shell.place / name).read_text().splitlines() if (shell.place / name).exists() else []


def test_calls_run_in_order_and_their_results_come_back(shell: Shell) -> None:
    """A-R43, A-R51: one that fails does not keep the rest from running."""
    task, state = start(
        shell, ["echo one >> log", "echo two >> log; exit 3"], ["echo three >> log"]
    )
    assert state == "succeeded"
    assert lines(shell, "log") == ["one", "two", "three"]
    shown = shell.adjourn("show", task, "--output", "json").doc
    assert shown["final_message"] == "2 answers"
    assert shown["steps_taken"] == 2


def test_nothing_of_a_batch_runs_before_a_person_has_decided_all_of_it(shell: Shell) -> None:
    """A-R13, A-R43, A-R44, A-R47, A-R56."""
    task, state = start(
        shell, ["echo one >> log", "echo two >> log", "echo three >> log"], flags=("--ask",)
    )
    assert state == "waiting"
    assert lines(shell, "log") == []
    shown = shell.adjourn("show", task, "--output", "json").doc
    first, second, _ = (call["id"] for call in shown["pause_reason"]["pending_tool_calls"])
    shell.adjourn("resume", task, "--approve", first, "--approve", second)
    assert lines(shell, "log") == ["one", "two"]
    again = shell.adjourn("resume", task, "--approve", first, expect=4)
    assert "there is nothing to resume" in again.err


def test_an_interrupted_call_ends_with_its_agent_and_leaves_nothing_behind(shell: Shell) -> None:
    """D-R5: Ctrl+C stops what runs beside the agent, too."""
    words = [
        sys.executable,
        str(START),
        str(shell.store),
        prompt(["echo one >> log; sleep 60; echo two >> log"]),
    ]
    process = subprocess.Popen(
        words, cwd=shell.place, env=shell.environment, stdout=subprocess.PIPE
    )
    until(lambda: lines(shell, "log") == ["one"], what="the call runs")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out.split()[1] == b"paused"
    shell.adjourn("resume", out.split()[0].decode())
    assert lines(shell, "log") == ["one"]


@pytest.mark.parametrize("seed", range(6))
def test_a_call_runs_once_whenever_its_supervisor_is_killed(shell: Shell, seed: int) -> None:
    """A worker adopts what the dead supervisor left, and nothing runs twice or is lost."""
    answers = [[f"echo {step}{call} >> log; sleep 0.05" for call in "ab"] for step in range(3)]
    words = [sys.executable, str(START), str(shell.store), prompt(*answers)]
    process = subprocess.Popen(
        words, cwd=shell.place, env=shell.environment, stdout=subprocess.DEVNULL
    )
    until(
        (shell.store / ("supervisors" if shell.database else "adjourn.db")).exists,
        what="the store is there",
    )
    time.sleep(random.Random(seed).uniform(0.1, 1.2))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    worker = shell.start("worker", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _ended(shell), what="the task has ended", seconds=60)
    finally:
        worker.terminate()
        worker.wait(timeout=30)
    assert lines(shell, "log") == [f"{step}{call}" for step in range(3) for call in "ab"]


def test_an_agent_whose_supervisor_died_leaves_when_nobody_takes_it_over(shell: Shell) -> None:
    """A waiting process costs nothing because there is none.

    Also where its supervisor was killed.
    """
    words = [
        sys.executable,
        str(START),
        str(shell.store),
        prompt(["echo one >> log; sleep 0.5"], ["echo two >> log"]),
    ]
    process = subprocess.Popen(
        words, cwd=shell.place, env=shell.environment, stdout=subprocess.DEVNULL
    )
    until(lambda: lines(shell, "log") == ["one"], what="the first call runs")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: _state(shell) == "paused", what="the agent has left", seconds=60)
    task = shell.adjourn("tasks", "--output", "json").doc["tasks"][0]["task_id"]
    shell.adjourn("resume", task)
    assert lines(shell, "log") == ["one", "two"]


def _state(shell: Shell) -> str:
    return str(shell.adjourn("tasks", "--output", "json").doc["tasks"][0]["state"])


def _ended(shell: Shell) -> bool:
    tasks = shell.adjourn("tasks", "--output", "json").doc["tasks"]
    return not tasks or tasks[0]["state"] in {"succeeded", "failed", "waiting"}


def test_each_call_of_a_batch_needs_its_two_people(shell: Shell) -> None:
    """Promises 20: `--approve-all` is one person's word on each, and a right that is gone is gone."""
    team = Team(shell)
    team.policy('[[rule]]\ntool = "run_command"\napprovals = 2\n')
    task, state = start(shell, ["echo one >> log", "echo two >> log"], flags=("--ask",))
    assert state == "waiting"
    waits = shell.json("resume", task, "--approve-all", expect=10)
    assert [ask["approvals"]["missing"] for ask in waits["asks"]] == [1, 1]
    first, second = (ask["id"] for ask in waits["asks"])
    team.approve(first, by="ben")
    team.approve(second, by="cleo")
    people = team.signers.folder / "config.toml"
    people.write_text(people.read_text().replace('"key:cleo"', '"key:other"'))
    again = shell.json("resume", task, expect=10)
    assert lines(shell, "log") == ["one"]
    (asked,) = [ask for ask in again["asks"] if ask["state"] == "pending"]
    assert asked["replaces"] == second
    assert asked["approvals"]["given"] == []
    team.approve(asked["id"])
    team.approve(asked["id"], by="ben")
    shell.adjourn("resume", task)
    assert lines(shell, "log") == ["one", "two"]
    shell.adjourn("audit", "verify")

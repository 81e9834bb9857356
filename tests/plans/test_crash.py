"""kill -9 of execute at any moment, then execute again.

No task runs twice, and in the end all of them have run.
"""

import random
import signal
import subprocess

import pytest

from tests.plans.planner import Planner

TASKS = 6
PATIENCE = 0.1  # seconds more for each try: on a slow machine, too, it ends
ROUNDS = {"ci": 3, "full": 150}


def test_whenever_execute_is_killed_no_task_runs_twice(shell: Planner, sweep: str) -> None:
    """D-R48, D-R51, D-R52: the effects of all rounds, together, are each task's, once.

    Never two at the same time.
    """
    dice = random.Random(3)
    for number in range(ROUNDS[sweep]):
        names = [f"r{number}t{task}" for task in range(TASKS)]
        line = "mkdir alone || echo TWO >> effects; echo {0} >> effects; sleep 0.02; rmdir alone"
        tasks = [
            {"id": name, "run": line.format(name), "needs": names[:at][-1:]}
            for at, name in enumerate(names)
        ]
        shell.plan(*tasks, name=f"r{number}.toml")
        kills = 0
        while (
            executed(shell, f"r{number}.toml", seconds=dice.uniform(0.1, 0.9) + PATIENCE * kills)
            != 0
        ):
            kills += 1
            nothing_is_uncertain(shell)
        assert shell.effects[number * TASKS :] == names
        assert set(shell.states(f"r{number}.toml").values()) == {"succeeded"}


def executed(shell: Planner, plan: str, *, seconds: float) -> int:
    """Execute a plan, kill it after some time, and return its exit code."""
    process = shell.start("execute", plan)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    return process.returncode


def executed_until(shell: Planner, plan: str, code: int, dice: random.Random) -> None:
    """Execute and kill until it leaves by itself."""
    kills = 0
    while executed(shell, plan, seconds=dice.uniform(0.1, 0.8) + PATIENCE * kills) != code:
        kills += 1


def nothing_is_uncertain(shell: Planner) -> None:
    """Only the supervisor was killed, never a shim: it is always known what ran."""
    assert [ask for ask in shell.inbox() if ask["kind"] == "uncertain"] == []


@pytest.mark.parametrize("word", ["approve", "request changes: more"])
def test_a_review_is_asked_once_whenever_execute_is_killed(
    shell: Planner, word: str, sweep: str
) -> None:
    """What was done is reviewed, not done again; what is to change is done once more."""
    dice = random.Random(5)
    for number in range(ROUNDS[sweep] // 3):
        name = f"r{number}"
        shell.plan(
            {"id": name, "run": f"echo {name} >> effects; sleep 0.05", "review": True},
            name=f"{name}.toml",
        )
        executed_until(shell, f"{name}.toml", 10, dice)
        (ask,) = shell.inbox()
        shell.adjourn("answer", ask["id"], word)
        expected = 0 if word == "approve" else 10
        executed_until(shell, f"{name}.toml", expected, dice)
        if expected:
            (ask,) = shell.inbox()
            shell.adjourn("answer", ask["id"], "approve")
        assert shell.effects.count(name) == (1 if word == "approve" else 2)

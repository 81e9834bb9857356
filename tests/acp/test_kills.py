"""Killed at random moments: no call runs without an approval, none runs twice, and no ask is lost."""

import os
import random
import re
import signal
import subprocess
from collections import Counter

import pytest

from tests.acp.scene import Scene
from tests.e2e.shell import until

JOBS = [f"echo {name} >> made.txt" for name in "ABC"]
KILLS = {"ci": 3, "full": 50}
PER_TASK = 3


def _job(scene: Scene, ask: dict[str, object]) -> str:
    """Return the job that an ask is about."""
    shown = scene.shell.adjourn("show", scene.task, "--full").out
    part = shown[shown.index(str(ask["id"])) :]
    found = re.search(r"echo (\w) >> made.txt", part)
    assert found, part
    return found[1]


def _decide(scene: Scene, approved: set[str], *, is_restarted: bool) -> None:
    """Be a person who approves each job once, and says truly what became of an uncertain call."""
    for ask in scene.asks():
        job = _job(scene, ask)
        if ask["kind"] == "uncertain":
            # What was started may have been killed before its effect
            verdict = "it-ran" if job in scene.lines() else "it-did-not"
            scene.shell.adjourn("settle", ask["id"], verdict)
        elif job in scene.lines():
            assert is_restarted, f"{job} was made, and is asked for again"
            scene.shell.adjourn("reject", ask["id"], "--reason", "it was made before")
        else:
            approved.add(job)
            scene.shell.adjourn("approve", ask["id"])


def _kill_at(scene: Scene, process: "subprocess.Popen[bytes]", chance: random.Random) -> bool:
    """Kill the driver, the agent or the supervisor at a moment; return whether one was there."""
    try:
        process.wait(chance.uniform(0.2, 4.0))
    except subprocess.TimeoutExpired:
        pass
    else:
        return False
    victim = chance.choice(["driver", "program", "supervisor"])
    if victim == "supervisor":
        os.kill(process.pid, signal.SIGKILL)
    else:
        scene.kill(victim)
    return True


@pytest.mark.timeout(3600)
def test_whoever_is_killed_whenever_each_approved_call_runs_once(scene: Scene, sweep: str) -> None:
    chance, kills, tasks = random.Random(19), 0, 0
    while kills < KILLS[sweep]:
        tasks += 1
        (scene.work / "made.txt").unlink(missing_ok=True)
        scene.play(jobs=JOBS, batch=chance.choice([1, 2]))
        approved, is_restarted, left, before = set[str](), False, PER_TASK, scene.newest
        words: tuple[str, ...] = (*scene.gated, f"do it, {tasks}")
        while True:
            process = scene.shell.start(*words)
            if left and _kill_at(scene, process, chance):
                kills, left = kills + 1, left - 1
            process.communicate(timeout=120)
            until(lambda: scene.shell.processes() == {}, what="all have left", seconds=60)
            assert set(scene.lines()) <= approved, "a call ran that nobody had approved"
            assert max(Counter(scene.lines()).values(), default=0) <= 1, "a call ran twice"
            if scene.newest == before:
                continue  # it was killed before it had recorded anything
            state = scene.shell.state(scene.task)
            if state == "succeeded":
                break
            can = state == "queued" or scene.shell.runs(scene.task)[-1]["resumable"]
            _decide(scene, approved, is_restarted=is_restarted)
            is_restarted = is_restarted or not can
            words = ("resume" if can else "restart", scene.task)
        assert sorted(scene.lines()) == ["A", "B", "C"], "an ask was lost"
        print(f"task {tasks}: {len(scene.shell.runs(scene.task))} runs, {kills} kills", flush=True)

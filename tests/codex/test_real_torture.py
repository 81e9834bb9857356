"""The real Codex is paused at random moments, again and again.

Every task ends, no step is doubled, no process is left.
"""

import random
import signal
import subprocess
import time

import pytest

from tests.codex.scene import Scene, shell
from tests.e2e.shell import until
from tests.model.script import Turn

STEPS = 3
PAUSES = 3


@pytest.mark.serial
@pytest.mark.timeout(1500)
# D-R44, D-R58
def test_a_task_that_is_paused_at_random_ends_and_no_step_is_doubled(
    real: Scene, sweep: str
) -> None:
    turns = [
        Turn(calls=(shell(f"./step.sh {number}", name=f"call_{number}"),), delay=0.2)
        for number in range(STEPS)
    ]
    real.shell.script('sleep 0.2; echo "$1" >> made.txt', name="step.sh")
    with real.model([*turns, Turn(text="All done.")]):
        for number in range(25 if sweep == "full" else 2):
            (real.work / "made.txt").unlink(missing_ok=True)
            _play(real, random.Random(number))
            steps = real.lines()
            assert len(steps) == len(set(steps)), steps
            assert real.shell.end() == {}


def _play(scene: Scene, chance: random.Random) -> None:
    words = ["run", "--runner", "codex", "--no-pause-on-approval", "do it"]
    for _ in range(PAUSES):
        process = _begun(scene, *words)
        time.sleep(chance.uniform(0.0, 2.5))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode in {0, 10}, (out, err)
        if process.returncode == 0:
            return
        words = _way_on(scene)
    scene.shell.adjourn(*words)


def _begun(scene: Scene, *words: str) -> "subprocess.Popen[bytes]":
    """Start adjourn, and return when its run has a process.

    Before that there is nothing to pause.
    """
    before = len(scene.shims())
    process = scene.shell.start(*words)
    until(lambda: len(scene.shims()) > before, what="the shim is there")
    return process


def _way_on(scene: Scene) -> list[str]:
    (*_, last) = scene.shell.runs(scene.task)
    if not last["resumable"]:
        (scene.work / "made.txt").unlink(missing_ok=True)  # it begins anew
    return ["resume" if last["resumable"] else "restart", scene.task]

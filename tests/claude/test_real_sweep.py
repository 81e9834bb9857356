"""Pauses at random moments: all tasks finish, no step is doubled, nothing is left running."""

import random
import signal
import subprocess
from collections import Counter

import pytest

from tests.claude.scene import Scene, bash
from tests.e2e.shell import until
from tests.model.script import Turn

STEPS = 5
PAUSES = 3
TASKS = {"ci": 1, "full": 25}


def _turns() -> list[Turn]:
    steps = [
        Turn(
            text=f"Step {number}.",
            calls=(bash(f"echo {number} >> steps; sleep 0.2", name=f"toolu_{number}"),),
            delay=0.3,
        )
        for number in range(STEPS)
    ]
    # Paused after its last words, it is asked for them again
    return [*steps, *[Turn(text="All done.")] * (PAUSES + 1)]


def _begun(real: Scene, *words: str) -> "subprocess.Popen[bytes]":
    """Start adjourn, and wait until it has a run: before that there is nothing to pause."""
    before = _runs(real)
    process = real.shell.start(*words)
    until(lambda: _runs(real) > before or process.poll() is not None, what="it runs", seconds=60)
    return process


def _runs(real: Scene) -> int:
    return len(list(real.shell.store.glob("runs/*/shim.json")))


def _until_it_leaves(process: "subprocess.Popen[bytes]", *, moment: float | None) -> int:
    """Wait for the end, or press Ctrl+C at a moment; return the exit code."""
    if moment is not None:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert b"Traceback" not in err, err
    assert process.returncode in {0, 10}, (process.returncode, out, err)
    return process.returncode


def _go_on(real: Scene) -> "subprocess.Popen[bytes]":
    """Resume the task, or restart it where its session was not on disk yet when it was stopped."""
    can = real.shell.runs(real.task)[-1]["resumable"]
    return _begun(real, "resume" if can else "restart", real.task)


@pytest.mark.timeout(1800)
def test_tasks_that_are_paused_at_random_finish_and_double_no_step(real: Scene, sweep: str) -> None:
    chance = random.Random(7)
    for number in range(TASKS[sweep]):
        (real.work / "steps").unlink(missing_ok=True)
        with real.model(_turns()):
            process = _begun(
                real, "run", "--runner", "claude", "--no-pause-on-approval", f"do it, {number}"
            )
            code = _until_it_leaves(process, moment=chance.uniform(0, 5))
            for _ in range(PAUSES - 1):
                if code == 10:
                    code = _until_it_leaves(_go_on(real), moment=chance.uniform(0, 5))
                    assert real.shell.processes() == {}
            while code == 10:
                code = _until_it_leaves(_go_on(real), moment=None)
        counted = Counter(real.lines("steps"))
        assert max(counted.values(), default=0) <= 1, counted
        assert (code, real.shell.state(real.task)) == (0, "succeeded")
        assert real.shell.processes() == {}
        print(
            f"task {number}: {len(real.shell.runs(real.task))} runs, {len(counted)} steps",
            flush=True,
        )

"""kill -9 at any moment of a pause and a resume: an approved call runs at most once, and nothing unapproved runs."""

import contextlib
import os
import random
import signal
import time

import pytest

from tests.claude.scene import GATED, Fake, bash
from tests.e2e.shell import until
from tests.model.script import Turn

ONE = Turn(text="I make it.", calls=(bash("echo A >> made.txt; sleep 0.3", name="toolu_A"),), delay=0.2)
DONE = Turn(text="All done.")
MOMENTS = {"ci": 4, "full": 40}
VICTIMS = {"supervisor": (" run ", " resume "), "driver": (" _claude",), "program": ("fake.py",), "hook": (" _hook",)}
WAYS_ON = {"waiting", "paused", "failed", "succeeded", "running", "queued"}


def _kill(fake: Fake, victim: str) -> None:
    """Kill every process that is one of these."""
    for pid, words in fake.shell.processes().items():
        if any(mark in f"{words} " for mark in VICTIMS[victim]) and "sh -c" not in words:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _killed(fake: Fake, words: tuple[str, ...], victim: str, moment: float) -> None:
    process = fake.shell.start(*words)
    with contextlib.suppress(Exception):
        process.wait(moment)
    _kill(fake, victim)
    process.communicate(timeout=60)
    until(lambda: not fake.shell.processes(), what="all of it has left", seconds=30)


def _settled(fake: Fake) -> str:
    """Let a person settle what is uncertain, and go on as far as it goes; return the task's state."""
    for _ in range(6):
        state = fake.shell.state(fake.task)
        if state in {"succeeded", "failed"}:
            return state
        for ask in fake.asks():
            if ask["kind"] == "approval":
                fake.shell.adjourn("approve", ask["id"])
            else:
                verdict = "it-ran" if fake.lines() else "it-did-not"
                fake.shell.adjourn("settle", ask["id"], verdict, expect=None)
        done = fake.resume(expect=None)
        assert done.code in {0, 1, 4, 6, 10}, done
        if done.code == 6:
            return "paused"
    return fake.shell.state(fake.task)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_whoever_is_killed_during_a_resume_an_approved_call_runs_at_most_once(fake: Fake, sweep: str, victim: str) -> None:
    chance = random.Random(victim)
    for _ in range(MOMENTS[sweep] // 2):
        (fake.work / "made.txt").unlink(missing_ok=True)
        fake.play([ONE, DONE])
        fake.run()
        fake.approve_all()
        _killed(fake, ("resume", fake.task), victim, chance.uniform(0.2, 2.5))
        state = _settled(fake)
        assert state in WAYS_ON
        assert len(fake.lines()) <= 1
        assert fake.shell.processes() == {}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_whoever_is_killed_during_a_pause_nothing_runs_unapproved(fake: Fake, sweep: str, victim: str) -> None:
    chance = random.Random(victim)
    for _ in range(MOMENTS[sweep] // 2):
        fake.play([ONE, DONE])
        before = time.monotonic()
        _killed(fake, (*GATED, "do it"), victim, chance.uniform(0.5, 2.5))
        assert time.monotonic() - before < 60
        assert fake.lines() == []
        assert fake.calls().get("toolu_A", "pending") in {"pending", "withdrawn"}

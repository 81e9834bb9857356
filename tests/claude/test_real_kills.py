"""kill -9 of any part of adjourn at any write of a pause or resume.

The real Claude Code makes an approved call at most once.
"""

import collections
import functools
import random
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.claude.scene import GATED, Scene, bash
from tests.crash.build import build
from tests.crash.inject import Aim, Mode, Shot
from tests.crash.range import Process, Range
from tests.crash.tools import Tools
from tests.e2e.shell import until
from tests.model.script import Turn

Step = Callable[[Scene, Range], Process]

TURNS = (
    Turn(text="I make it.", calls=(bash("echo A >> made.txt; sleep 0.5", name="toolu_A"),)),
    Turn(text="All done."),
)
POINTS = {"ci": 1, "full": 8}  # of each victim
KILLS = (Mode.BEFORE, Mode.AFTER, Mode.TORN)
VICTIMS = {  # the name of the process, and which one of that name
    "supervisor": ("adjourn", 0),
    "shim": ("adjourn-shim", 0),
    "driver": ("adjourn", 1),
    "hook": ("adjourn", 2),
}
# Writes that each of them surely makes: CI does not count them first
LEAST = {"supervisor": 60, "shim": 8, "driver": 60}
ENDS = {0, 1, 4, 6, 10}


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build(tmp_path_factory.mktemp("tools"))


@pytest.fixture
def butts(real: Scene, tools: Tools) -> Iterator[Range]:
    """Return a range, with a model that plays the same to every task."""
    with real.model(TURNS):
        yield Range(real, tools.library)


# --- the steps ------------------------------------------------------------------------------------


def stops_at_a_call(_: Scene, butts: Range) -> Process:
    """Begin, up to the call that needs a person."""
    return butts.start(*GATED, "do it")


def goes_on(scene: Scene, butts: Range) -> Process:
    """Resume with the call approved."""
    return butts.start("resume", scene.task)


def goes_on_under_a_worker(_: Scene, butts: Range) -> Process:
    """Let a worker resume it."""
    return butts.start("worker", "--once")


def is_interrupted(scene: Scene, butts: Range) -> Process:
    """Press Ctrl+C while the approved call runs."""
    process = goes_on(scene, butts)
    until(
        lambda: scene.lines() != [] or process.poll() is not None, what="the call runs", seconds=60
    )
    process.send_signal(signal.SIGINT)
    return process


STEPS: dict[Step, str] = {  # and who is killed in CI's share
    stops_at_a_call: "driver",
    goes_on: "driver",
    goes_on_under_a_worker: "supervisor",
    is_interrupted: "shim",
}


# --- what must be true ----------------------------------------------------------------------------


def _look(scene: Scene, *, approved: bool) -> str:
    """Look at a call after the crash.

    What ran was approved, and what ran or may have run is known to have.
    """
    ran, state = scene.lines(), scene.calls().get("toolu_A")
    assert len(ran) <= (1 if approved else 0), (ran, state)
    if ran:
        assert state in {"done", "failed", "uncertain"}, state
    else:
        assert state != "done", state
    if state == "uncertain":
        assert "uncertain" in {ask["kind"] for ask in scene.asks()}, state
    return state or "unknown"


def _go_on(scene: Scene) -> int:
    """Settle and approve as a person would, then resume twice at once.

    Return the exit code that tells how it went on.
    """
    for ask in scene.asks():
        if ask["kind"] == "uncertain":
            scene.shell.adjourn("settle", ask["id"], "it-ran" if scene.lines() else "it-did-not")
        elif not scene.lines():
            scene.shell.adjourn("approve", ask["id"])
        else:
            scene.shell.adjourn("reject", ask["id"])
    racers = [scene.shell.start("resume", scene.task) for _ in range(2)]
    for racer in racers:
        _, err = racer.communicate(timeout=120)
        assert racer.returncode in ENDS, (racer.returncode, err)
        assert b"Traceback" not in err, err
    return min(racer.returncode for racer in racers)


def _ends(scene: Scene) -> None:
    """Go on until it has ended, or only a restart is left."""
    for _ in range(4):
        if scene.shell.state(scene.task) in {"succeeded", "failed"} or _go_on(scene) == 6:
            break
        assert len(scene.lines()) <= 1
    if scene.shell.state(scene.task) not in {"succeeded", "failed"}:
        assert "restart" in scene.resume(expect=6).err
        scene.shell.adjourn("cancel", scene.task)
    assert len(scene.lines()) <= 1


def _shots(scene: Scene, butts: Range, step: Step, victim: str, *, sweep: str) -> Iterator[Shot]:
    """Play a step again and again, and kill a victim at one of its writes.

    The full sweep counts them first.
    """
    role, instance = VICTIMS[victim]
    play = functools.partial(step, scene, butts)
    chance, points = random.Random(f"{step.__name__} {victim}"), POINTS[sweep]
    calls = (
        butts.shoot(play, Aim(role=role, instance=instance)).calls
        if sweep == "full"
        else LEAST[victim]
    )
    assert calls >= LEAST.get(victim, 1), f"the {victim} makes {calls} writes"
    for number in range(points):
        at = 1 + int((number + chance.random()) * calls / points)
        yield butts.shoot(play, Aim(role=role, instance=instance, at=at, mode=chance.choice(KILLS)))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("step", STEPS, ids=[step.__name__ for step in STEPS])
def test_whoever_is_killed_an_approved_call_runs_at_most_once(
    real: Scene, butts: Range, step: Step, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_approved = step is not stops_at_a_call
    if is_approved:
        real.run()
        real.approve_all()
    butts.keep()
    for victim in VICTIMS if sweep == "full" else (STEPS[step],):
        told = collections.Counter[str]()
        for shot in _shots(real, butts, step, victim, sweep=sweep):
            state = _look(real, approved=is_approved) if real.newest else "none"
            told[f"{'killed' if shot.killed else 'missed'}, the call is {state}"] += 1
            if real.newest:
                _ends(real)
        with capsys.disabled():
            print(f"\n{step.__name__}: the {victim} is {dict(told)}", flush=True)

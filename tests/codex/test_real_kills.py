"""kill -9 of adjourn at any write of a pause and of a resume with the real Codex.

An approved call runs at most once.
"""

import functools
import random
import signal
from pathlib import Path

import pytest

from tests.codex.scene import GATED, Scene, shell
from tests.crash.build import build
from tests.crash.inject import Aim, Mode
from tests.crash.range import Process, Range
from tests.e2e.shell import until
from tests.model.script import Turn

pytestmark = pytest.mark.timeout(7200)

MAKES = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
AGAIN = Turn(calls=(shell("echo hi >> made.txt", name="call_B"),))
DONE = Turn(text="All done.")
SPARE = [DONE] * 3  # whoever is killed after the last words asks for them once more
SUPERVISOR, DRIVER, HOOK, SHIM = ("adjourn", 0), ("adjourn", 1), ("adjourn", 2), ("adjourn-shim", 0)
REPEAT, EXECUTE = (), ("--option", "on-approve=execute")
PAUSE = (
    "run",
    "--runner",
    "codex",
    "--no-pause-on-approval",
    "do it",
)  # ungated, and then interrupted
DEATHS = {  # at each step, of each that there is
    "ci": {DRIVER: 2, SUPERVISOR: 1, SHIM: 1, HOOK: 1},
    "full": {DRIVER: 1000, SUPERVISOR: 25, SHIM: 25, HOOK: 25},
}
# At least so many; a hook that is left waiting has but asked
WRITES = {DRIVER: 110, SUPERVISOR: 75, SHIM: 20, HOOK: 1}
AFTER_IT = frozenset({"succeeded", "failed"})


@pytest.fixture
def butts(real: Scene, tmp_path: Path) -> Range:
    tools = tmp_path / "tools"
    tools.mkdir()
    return Range(real, build(tools).library)


def _aims(victim: tuple[str, int], calls: int, *, share: int, seed: str) -> list[Aim]:
    """Choose moments: all of them, or a share that is the same each time."""
    role, instance = victim
    chance = random.Random(seed)
    moments = sorted(chance.sample(range(1, calls + 1), min(share, calls)))
    return [
        Aim(
            at=at,
            mode=chance.choice([Mode.BEFORE, Mode.AFTER, Mode.TORN]),
            role=role,
            instance=instance,
        )
        for at in moments
    ]


def _end(scene: Scene) -> str:
    """Do what a person would do, until the task has ended: look, decide, settle, go on."""
    for _ in range(8):
        tasks = scene.shell.json("tasks")["tasks"]
        if not tasks:
            return "never begun"
        if (state := tasks[0]["state"]) in AFTER_IT:
            return str(state)
        for ask in scene.asks():
            _decide(scene, ask["id"], ask["kind"])
        done = scene.resume(expect=None)
        assert "Traceback" not in done.err, done
        assert done.code in {0, 1, 4, 6, 10}, done
        if done.code == 6:
            scene.shell.adjourn("restart", scene.task, expect=None)
        assert len(scene.lines()) <= 1
    return scene.shell.state(scene.task)


def _decide(scene: Scene, ask: str, kind: str) -> None:
    """Decide as somebody who has looked: what has run is not wanted once more."""
    has_run = bool(scene.lines())
    if kind == "approval":
        scene.shell.adjourn("reject" if has_run else "approve", ask)
    else:
        scene.shell.adjourn("settle", ask, "it-ran" if has_run else "it-did-not", expect=None)


def _played(scene: Scene, butts: Range, words: tuple[str, ...]) -> Process:
    process = butts.start(*words)
    if words == PAUSE:
        until(
            lambda: scene.lines() != [] or process.poll() is not None,
            what="the command runs",
            seconds=60,
        )
        process.send_signal(signal.SIGINT)
    return process


def _swept(
    scene: Scene,
    butts: Range,
    words: tuple[str, ...],
    *,
    sweep: str,
    but: tuple[str, int] | None = None,
) -> None:
    butts.keep()
    play = functools.partial(_played, scene, butts, words)
    for victim, share in DEATHS[sweep].items():
        if victim == but:
            continue
        calls = (
            WRITES[victim]
            if sweep == "ci"
            else butts.shoot(play, Aim(role=victim[0], instance=victim[1])).calls
        )
        assert calls >= WRITES[victim]
        aims = _aims(victim, calls, share=share, seed=f"{words[0]} {victim}")
        killed = [_killed(scene, butts, words, aim) for aim in aims]
        print(
            f"{words[0]} {victim}: {sum(killed)} of {len(aims)} killed, of {calls} writes",
            flush=True,
        )
        assert sum(killed) >= len(aims) // 2


def _killed(scene: Scene, butts: Range, words: tuple[str, ...], aim: Aim) -> bool:
    shot = butts.shoot(functools.partial(_played, scene, butts, words), aim)
    assert len(scene.lines()) <= 1, (aim, shot.what)
    if words[0] == "run" and words != PAUSE:
        assert scene.lines() == [], (aim, shot.what)
    state = _end(scene)
    assert state in {*AFTER_IT, "never begun"}, (aim, shot.what, state)
    assert len(scene.lines()) <= 1, (aim, shot.what)
    assert scene.shell.processes() == {}
    return bool(shot.killed)


def test_whoever_is_killed_while_codex_pauses_nothing_runs_unapproved(
    real: Scene, butts: Range, sweep: str
) -> None:
    with real.model([MAKES, AGAIN, DONE, *SPARE]):
        _swept(real, butts, (*GATED, "do it"), sweep=sweep)


@pytest.mark.parametrize("options", [REPEAT, EXECUTE], ids=["repeat", "execute"])
def test_whoever_is_killed_while_codex_goes_on_the_call_runs_at_most_once(
    real: Scene, butts: Range, sweep: str, options: tuple[str, ...]
) -> None:
    turns = [MAKES, DONE, *SPARE] if options else [MAKES, AGAIN, DONE, *SPARE]
    with real.model(turns):
        real.run(options=options)
        real.approve_all()
        _swept(real, butts, ("resume", real.task), sweep=sweep, but=HOOK if options else None)


def test_whoever_is_killed_during_a_pause_by_ctrl_c_the_command_is_not_begun_again(
    real: Scene, butts: Range, sweep: str
) -> None:
    slow = Turn(calls=(shell("echo hi >> made.txt; sleep 60", name="call_A"),))
    with real.model([slow, DONE, *SPARE]):
        _swept(real, butts, PAUSE, sweep=sweep)

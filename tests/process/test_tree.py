"""Nothing of a run lives on after it, however hard it tries; and nothing else is touched."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.process.cgroup import usable_folder
from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import is_alive
from adjourn.process.tree import children
from tests.needs import needs
from tests.process.scene import PYTHON, Scene, Stage, alive_with, eventually, fork, kill, none_with

WILD = str(Path(__file__).with_name("wild.py"))
WAYS = ("daemon", "nameless", "stopped", "hydra", "runaway", "dynasty", "headless", "foster")
ENDINGS = ("leave", "deaf", "hydra")
GRACE = 0.2

pytestmark = pytest.mark.serial


@pytest.fixture(params=("cgroup", "subreaper"))
def use_cgroup(request: pytest.FixtureRequest) -> bool:
    """Say whether shims use a control group; where they may not, there is one way only."""
    if request.param == "cgroup" and usable_folder() is None:
        pytest.skip("no control groups here")
    return bool(request.param == "cgroup")


@pytest.fixture
def bystanders() -> Iterator[list[int]]:
    """Return processes that no test has a reason to touch; whoever does makes it fail."""
    pids = [fork(lambda: None) for _ in range(3)]
    yield pids
    for pid in pids:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "a stranger was killed"
        kill(pid)


def start_wild(stage: Stage, name: str, *ways: str, use_cgroup: bool) -> Scene:
    scene = stage.start(*PYTHON, WILD, name, *ways, grace=GRACE, use_cgroup=use_cgroup)
    assert eventually(scene.stdout) == b"wild\n", scene.stderr()
    return scene


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("bystanders")
def test_no_way_of_staying_alive_helps(stage: Stage, way: str, *, use_cgroup: bool) -> None:
    for ending in ENDINGS:
        name = f"wild-{way}-{ending}-{os.getpid()}"
        scene = start_wild(stage, name, way, ending, use_cgroup=use_cgroup)
        if ending != "leave":
            assert alive_with(name)
            scene.shim.interrupt()
        result = scene.result()
        assert not alive_with(name)
        assert result.survivors == 0
        assert result.killed == (None if ending == "leave" else "grace")
    assert no_group_is_left(stage)


@pytest.mark.usefixtures("bystanders")
def test_of_many_hostile_trees_none_survives(stage: Stage, sweep: str, *, use_cgroup: bool) -> None:
    """200 hostile trees: 0 survivors after grace + 2 s."""
    chance = random.Random(2)
    rounds, at_once = {"ci": 13, "full": 130}[sweep], 8
    slowest = 0.0
    for number in range(rounds):
        names = [f"wild-{number}-{one}-{os.getpid()}" for one in range(at_once)]
        scenes = [
            start_wild(
                stage, name, *chance.sample(WAYS, 3), chance.choice(ENDINGS), use_cgroup=use_cgroup
            )
            for name in names
        ]
        began = time.monotonic()
        for scene in scenes:
            scene.shim.interrupt()
        results = [scene.result() for scene in scenes]
        slowest = max(slowest, time.monotonic() - began)
        assert not [pid for name in names for pid in alive_with(name)]
        assert not any(result.survivors for result in results)
    print(
        f"{rounds * at_once} hostile trees: 0 survivors, the slowest eight took {slowest - GRACE:.2f} s beyond the grace"
    )
    assert slowest < GRACE + 2
    assert no_group_is_left(stage)


def no_group_is_left(stage: Stage) -> bool:
    folder = usable_folder()
    mine = {
        f"adjourn-{scene.shim.identity.pid}-{scene.shim.identity.start_time}"
        for scene in stage.scenes
    }
    return folder is None or mine.isdisjoint(os.listdir(folder))


@pytest.mark.skipif(usable_folder() is None, reason="no control groups here")
def test_the_group_of_a_killed_shim_is_removed_by_the_fork_server(stage: Stage) -> None:
    scenes = [stage.start("sleep", "60") for _ in range(3)]
    for scene in scenes:
        os.kill(scene.shim.identity.pid, signal.SIGKILL)
    assert eventually(no_group_is_left, stage)


@pytest.mark.skipif(usable_folder() is None, reason="no control groups here")
def test_a_group_that_nobody_removed_is_removed_by_the_next_fork_server_to_leave(
    tmp_path: Path,
) -> None:
    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    scene = stage.start("sleep", "60")
    kill(server.pid)
    server.close()
    os.kill(scene.shim.identity.pid, signal.SIGKILL)
    assert scene.shim.wait(5)
    scene.shim.close()
    ForkServer.start().close()
    assert eventually(no_group_is_left, stage)


RUNAWAY = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    if (fork()) { sleep(60); return 0; }
    alarm(20);
    for (long turn = 0; turn < 2000000; turn++) {
        if (fork()) _exit(0);
        if (count > 2) setsid();
    }
}
"""


@pytest.mark.parametrize("sessions", ((), ("anew",)))
@pytest.mark.usefixtures("bystanders")
def test_even_the_fastest_runaway_is_caught(
    stage: Stage, sessions: tuple[str, ...], *, use_cgroup: bool
) -> None:
    program = stage.folder / "runaway"
    (stage.folder / "runaway.c").write_text(RUNAWAY)
    subprocess.run([needs("gcc"), "-O2", "-o", program, f"{program}.c"], check=True)
    for number in range(5):
        name = f"runaway-{number}-{os.getpid()}"
        scene = stage.start(str(program), name, *sessions, use_cgroup=use_cgroup)
        time.sleep(0.1)
        began = time.monotonic()
        scene.shim.kill()
        assert scene.result().survivors == 0
        assert time.monotonic() - began < 2
        assert not alive_with(name)


@pytest.mark.usefixtures("bystanders")
def test_what_a_killed_shim_leaves_is_ended_by_the_fork_server(
    stage: Stage, *, use_cgroup: bool
) -> None:
    other = stage.start("sleep", "60")
    for way in WAYS:
        name = f"wild-{way}-orphan-{os.getpid()}"
        scene = start_wild(stage, name, way, "daemon", "deaf", use_cgroup=use_cgroup)
        os.kill(scene.shim.identity.pid, signal.SIGKILL)
        assert eventually(none_with, name), way
    assert is_alive(other.shim.identity)


def test_children_are_listed_also_where_the_kernel_keeps_no_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pids = sorted(fork(lambda: None) for _ in range(3))
    listed = sorted(children())
    monkeypatch.setattr("adjourn.process.tree.CHILDREN", "/nonexistent/{}")
    scanned = sorted(children())
    for pid in pids:
        kill(pid)
    assert set(pids) <= set(scanned) <= set(listed)

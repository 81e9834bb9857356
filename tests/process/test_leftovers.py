"""What is left of a run whose shim was killed is found and ended; nothing else is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from adjourn.process.cgroup import usable_folder
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import read_record
from adjourn.process.tree import kill_leftovers
from tests.process.scene import PATH, PYTHON, Scene, Stage, alive_with, eventually, fork, kill

WILD = str(Path(__file__).with_name("wild.py"))

CLEAR_UP = """
import sys
sys.path[:0] = sys.argv[2].split(":")
from adjourn.process.tree import kill_leftovers
print(kill_leftovers(sys.argv[1], "of-mine"))
"""

pytestmark = pytest.mark.serial


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[Stage]:
    """Return a stage that nobody watches over: its fork server is dead before the first shim is."""
    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    yield stage
    server.close()


def lose(stage: Stage, name: str, *argv: str, use_cgroup: bool, clear: bool = False) -> Scene:
    """Start this, then kill the fork server, then the shim."""
    env = {"PATH": PATH} if clear else {"PATH": PATH, "ADJOURN_RUN_ID": name}
    scene = stage.start(*argv, use_cgroup=use_cgroup, env=env)
    assert eventually(scene.stdout)
    kill(stage.forks.pid)
    os.kill(scene.shim.identity.pid, signal.SIGKILL)
    assert scene.shim.wait(5)
    scene.shim.close()
    return scene


@pytest.mark.parametrize(
    "ways", (("daemon",), ("stopped", "hydra"), ("dynasty", "headless"), ("foster", "daemon"))
)
def test_they_are_known_by_the_run_they_were_started_with(
    lost: Stage, ways: tuple[str, ...]
) -> None:
    name = f"left-{'-'.join(ways)}-{os.getpid()}"
    scene = lose(lost, name, *PYTHON, WILD, name, *ways, "deaf", use_cgroup=False)
    assert eventually(alive_with, name)
    assert kill_leftovers(str(scene.run_dir), name) > 0
    assert not alive_with(name)
    assert kill_leftovers(str(scene.run_dir), name) == 0


@pytest.mark.skipif(usable_folder() is None, reason="no control groups here")
def test_a_control_group_knows_even_those_who_wiped_every_trace(lost: Stage) -> None:
    name = f"left-all-{os.getpid()}"
    ways = ("nameless", "daemon", "stopped", "runaway", "dynasty", "headless", "foster")
    scene = lose(lost, name, *PYTHON, WILD, name, *ways, "deaf", use_cgroup=True, clear=True)
    record = read_record(str(scene.run_dir))
    assert record is not None
    assert record.cgroup is not None
    assert eventually(lambda: alive_with(name))
    assert kill_leftovers(str(scene.run_dir), name) > 0
    assert not alive_with(name)
    assert not Path(record.cgroup).exists()


def test_a_session_and_its_pipe_know_those_who_stayed_in_it(lost: Stage) -> None:
    # Both are there before it says so
    script = "env -i sleep 4243.5 & sleep 4243.5 & echo on; wait"
    scene = lose(lost, "unknown", "sh", "-c", script, use_cgroup=False, clear=True)
    assert alive_with("4243.5")
    assert kill_leftovers(str(scene.run_dir), "unknown") >= 2
    assert not alive_with("4243.5")


def test_other_runs_and_other_people_are_left_alone(tmp_path: Path) -> None:
    def wear(run: str) -> None:
        command = ["sh", "-c", "sleep 600; :", "ADJOURN_RUN_ID=mine"]
        os.execve(
            "/bin/sh", command, {"PATH": PATH, "ADJOURN_RUN_ID": run, "X": "ADJOURN_RUN_ID=mine"}
        )

    others = [fork(partial(wear, run)) for run in ("mine2", "min", "")]
    assert kill_leftovers(str(tmp_path), "mine") == 0
    assert eventually(lambda: alive_with("ADJOURN_RUN_ID=mine"))
    assert kill_leftovers(str(tmp_path), "mine") == 0
    for pid in others:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        kill(pid)


def test_the_one_who_clears_up_is_spared_though_it_is_of_the_run(tmp_path: Path) -> None:
    path = ":".join(entry for entry in sys.path if entry)
    script = 'sleep 4244.5 & "$@"; echo gone'
    command = ["sh", "-c", script, "sh", sys.executable, "-c", CLEAR_UP, str(tmp_path), path]
    done = subprocess.run(
        command,
        env={"PATH": PATH, "ADJOURN_RUN_ID": "of-mine"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "2\n"
    assert not alive_with("4244.5")

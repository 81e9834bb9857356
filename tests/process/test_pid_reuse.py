"""A pid that another process got is that process's: no signal of ours ever reaches it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from adjourn.core.task import ProcessId
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import ShimRecord, adopt, read_record
from adjourn.process.tree import kill_leftovers
from adjourn.system.files import hold_lock
from tests.needs import missing
from tests.process.scene import PATH, PYTHON, Stage, alive_with, eventually, kill

HERE = Path(__file__).parent
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")

pytestmark = pytest.mark.serial


class Squat:
    """What became of the processes that took over pids."""

    taken = 0
    harmed = 0


@pytest.fixture(autouse=True)
def chosen_pids() -> None:
    """Skip where nobody may choose the next pid."""
    if not os.access(LAST_PID, os.W_OK):
        missing("a writable /proc/sys/kernel/ns_last_pid")


@contextmanager
def squatting(*pids: int) -> Iterator[Squat]:
    """Have each of these pids taken over as soon as it is free."""
    command = [*PYTHON, str(HERE / "squatter.py"), *map(str, pids)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as squatter:
        assert squatter.stdout
        assert squatter.stdin
        assert squatter.stdout.readline() == "ready\n"
        squat = Squat()
        yield squat
        squatter.stdin.write("\n")
        squatter.stdin.flush()
        squat.taken, squat.harmed = map(int, squatter.stdout.readline().split())


def are_taken(*pids: int) -> bool:
    return set(pids) <= set(alive_with("squatter.py"))


def is_a_crowd(name: str) -> bool:
    return len(alive_with(name)) > 60


def test_whoever_took_a_shims_pid_is_not_adopted_and_gets_no_signal(stage: Stage) -> None:
    for _ in range(5):
        scene = stage.start("true")
        shim = scene.shim
        scene.result()
        with squatting(shim.identity.pid) as squat:
            assert eventually(are_taken, shim.identity.pid)
            lock = hold_lock(f"{scene.run_dir}/shim.lock")  # even if somebody held it again
            assert adopt(str(scene.run_dir), shim.identity) is None
            lock.close()
            shim.interrupt()
            shim.kill()
            time.sleep(0.05)
        assert (squat.taken, squat.harmed) == (1, 0)


def test_whoever_took_the_childs_pid_and_session_is_no_leftover(stage: Stage) -> None:
    for _ in range(5):
        scene = stage.start("true")
        scene.result()
        record = read_record(str(scene.run_dir))
        assert record is not None
        with squatting(record.child, record.pid) as squat:
            assert eventually(are_taken, record.child, record.pid)
            assert kill_leftovers(str(scene.run_dir), "run-of-nobody") == 0
        assert (squat.taken, squat.harmed) == (2, 0)


def test_pids_that_change_hands_while_a_tree_is_killed_are_left_alone(
    stage: Stage, sweep: str
) -> None:
    """Forced pid reuse: 0 wrong signals."""
    taken = harmed = 0
    for number in range({"ci": 15, "full": 200}[sweep]):
        name = f"wild-reuse-{number}-{os.getpid()}"
        scene = stage.start(
            *PYTHON,
            str(HERE / "wild.py"),
            name,
            "dynasty",
            "dynasty",
            "foster",
            "deaf",
            use_cgroup=False,
        )
        assert eventually(is_a_crowd, name)
        with squatting(*alive_with(name)) as squat:
            scene.shim.kill()
            assert scene.result().survivors == 0
            time.sleep(0.05)
        taken, harmed = taken + squat.taken, harmed + squat.harmed
        assert not alive_with(name)
    print(f"{taken} pids taken over while their trees were killed, {harmed} wrong signals")
    assert taken > 0
    assert harmed == 0


def test_pids_that_change_hands_while_leftovers_are_killed_are_left_alone(
    tmp_path: Path, sweep: str
) -> None:
    taken = harmed = 0
    for number in range({"ci": 8, "full": 100}[sweep]):
        name = f"wild-left-{number}-{os.getpid()}"
        server = ForkServer.start()
        stage = Stage(server, tmp_path)
        env = {"PATH": PATH, "ADJOURN_RUN_ID": name}
        scene = stage.start(
            *PYTHON,
            str(HERE / "wild.py"),
            name,
            "dynasty",
            "dynasty",
            "deaf",
            use_cgroup=False,
            env=env,
        )
        assert eventually(is_a_crowd, name)
        os.kill(scene.shim.identity.pid, signal.SIGSTOP)  # it would end its tree without a server
        kill(server.pid)
        server.close()
        os.kill(scene.shim.identity.pid, signal.SIGKILL)
        with squatting(*alive_with(name)) as squat:
            assert kill_leftovers(str(scene.run_dir), name) > 0
            time.sleep(0.05)
        taken, harmed = taken + squat.taken, harmed + squat.harmed
        assert not alive_with(name)
        scene.shim.close()
    print(f"{taken} pids taken over while leftovers were killed, {harmed} wrong signals")
    assert taken > 0
    assert harmed == 0


def test_a_record_of_another_boot_names_nobody(tmp_path: Path) -> None:
    me = ProcessId(boot_id="another boot", pid=os.getpid(), start_time=1)
    record = ShimRecord(
        **msgspec.structs.asdict(me), child=os.getsid(0), child_start_time=1, pipes=()
    )
    (tmp_path / "shim.json").write_bytes(msgspec.json.encode(record))
    assert kill_leftovers(str(tmp_path), "run") == 0

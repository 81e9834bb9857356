"""The child starts when the gate is opened, once.

If the supervisor dies before, it never starts.
"""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import identify, is_alive
from adjourn.process.shim import (
    GateShut,
    ShimFailed,
    ShimResult,
    ShimSpec,
    adopt,
    read_record,
    read_result,
)
from adjourn.system.files import is_lock_held
from tests.process.scene import Stage, eventually, fork, kill

MARK = ("sh", "-c", "echo ran >> mark")


def marks(stage: Stage) -> int:
    mark = stage.folder / "mark"
    return mark.read_text().count("ran") if mark.exists() else 0


def test_an_open_gate_starts_the_child_once(stage: Stage) -> None:
    result = stage.run(*MARK)
    assert (result.started, result.exit_code, result.signal) == (True, 0, None)
    assert result.began_at is not None
    assert result.ended_at is not None
    assert 0 <= result.ended_at - result.began_at < 60_000
    assert marks(stage) == 1


def test_a_gate_that_is_shut_starts_nothing(stage: Stage) -> None:
    scene = stage.ready(*MARK)
    scene.shim.shut_gate()
    assert scene.result() == ShimResult(started=False)
    assert (scene.run_dir / "result.json").read_bytes() == b'{"started":false}'
    assert marks(stage) == 0


def test_nothing_starts_while_the_gate_is_shut(stage: Stage) -> None:
    scene = stage.ready(*MARK)
    assert not scene.shim.wait(0.3)
    assert marks(stage) == 0
    assert is_alive(scene.shim.identity)
    assert is_lock_held(f"{scene.run_dir}/shim.lock")
    record = read_record(str(scene.run_dir))
    assert record is not None
    assert record.identity == scene.shim.identity


def test_a_gate_opens_only_once(stage: Stage) -> None:
    scene = stage.start(*MARK)
    with pytest.raises(RuntimeError):
        scene.shim.open_gate()
    assert scene.result().started
    assert marks(stage) == 1


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1))
def test_a_signal_before_the_gate_opens_means_not_started(stage: Stage, number: int) -> None:
    scene = stage.ready(*MARK)
    os.kill(scene.shim.identity.pid, number)
    assert scene.result() == ShimResult(started=False, interrupted=True)
    with pytest.raises(GateShut):
        scene.shim.open_gate()
    assert marks(stage) == 0


def test_a_shim_that_died_at_the_gate_is_known_to_have_started_nothing(stage: Stage) -> None:
    for _ in range(20):
        scene = stage.ready(*MARK)
        os.kill(scene.shim.identity.pid, signal.SIGKILL)
        assert scene.shim.wait(10)
        assert read_result(str(scene.run_dir)) is None
        with pytest.raises(GateShut):
            scene.shim.open_gate()
    assert marks(stage) == 0


def test_a_child_that_died_at_the_gate_is_known_not_to_have_started(stage: Stage) -> None:
    scene = stage.ready(*MARK)
    record = read_record(str(scene.run_dir))
    assert record is not None
    os.kill(record.child, signal.SIGKILL)
    assert eventually(lambda: identify(record.child) is None)
    scene.shim.open_gate()
    result = scene.result()
    assert not result.started
    assert result.error == "it died before it became the command"
    assert result.is_shortage, "whatever killed it was not the command"


def supervise_until_killed(spec: ShimSpec, *, opens: bool, ready: int) -> None:
    shim = ForkServer.start().fork_shim(spec)
    if opens:
        shim.open_gate()
    os.write(ready, b"!")
    signal.pause()


def test_a_supervisor_killed_before_the_byte_leaves_a_child_that_never_ran(stage: Stage) -> None:
    for _ in range(10):
        spec = stage.spec(*MARK)
        told, ready = os.pipe()
        pid = fork(partial(supervise_until_killed, spec, opens=False, ready=ready))
        os.read(told, 1)
        kill(pid)
        assert eventually(read_result, spec.run_dir) == ShimResult(started=False)
    assert marks(stage) == 0


def test_a_supervisor_killed_after_the_byte_disturbs_nothing(stage: Stage) -> None:
    for number in range(10):
        spec = stage.spec("sh", "-c", "sleep 0.05; echo out; echo ran >> mark")
        told, ready = os.pipe()
        pid = fork(partial(supervise_until_killed, spec, opens=True, ready=ready))
        os.read(told, 1)
        kill(pid)
        result = eventually(read_result, spec.run_dir)
        assert result is not None
        assert (result.started, result.exit_code, result.stdout_bytes) == (True, 0, 4)
        assert marks(stage) == number + 1


def test_whenever_the_supervisor_dies_the_child_ran_once_or_provably_not(
    stage: Stage, sweep: str
) -> None:
    """A-R47: the supervisor's own death never leaves it open whether the child ran."""
    chance = random.Random(4711)
    began = time.monotonic()
    test_a_supervisor_killed_after_the_byte_disturbs_nothing(stage)
    usual = (time.monotonic() - began) / 10 - 0.05
    started = 0
    rounds = {"ci": 60, "full": 1000}[sweep]
    for _ in range(rounds):
        before, spec = marks(stage), stage.spec(*MARK)
        told, ready = os.pipe()
        pid = fork(partial(supervise_until_killed, spec, opens=True, ready=ready))
        time.sleep(chance.uniform(0, 1.5 * usual))
        kill(pid)
        os.close(told)
        os.close(ready)
        record = read_record(spec.run_dir)
        shim = record and adopt(spec.run_dir, record.identity)
        if shim:
            assert shim.wait(10)
            shim.close()
        result = read_result(spec.run_dir)
        # Adopted too early to see its result, or killed before it stood at the gate
        if record and result is None:
            result = eventually(read_result, spec.run_dir)
        ran = bool(result and result.started)
        assert marks(stage) - before == ran
        started += ran
    print(f"{started} of {rounds} children started")
    assert 0 < started < rounds


def test_a_living_shim_is_adopted_and_a_dead_one_is_not(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo here; sleep 60")
    assert eventually(scene.stdout)
    adopted = adopt(str(scene.run_dir), scene.shim.identity)
    assert adopted is not None
    assert adopted.identity == scene.shim.identity
    assert not adopted.wait(0)
    with pytest.raises(RuntimeError):
        adopted.open_gate()
    adopted.kill()
    assert adopted.wait(10)
    assert scene.result().killed == "kill"
    assert adopt(str(scene.run_dir), scene.shim.identity) is None
    adopted.close()


def test_a_process_without_the_lock_is_not_adopted(stage: Stage, tmp_path: Path) -> None:
    scene = stage.ready("true")
    assert adopt(str(tmp_path), scene.shim.identity) is None


def test_a_torn_result_is_no_result(tmp_path: Path) -> None:
    assert read_result(str(tmp_path)) is None
    (tmp_path / "result.json").write_bytes(b'{"started":tr')
    assert read_result(str(tmp_path)) is None


def test_a_run_has_one_result_only(stage: Stage) -> None:
    spec = stage.spec(*MARK)
    shim = stage.forks.fork_shim(spec)
    shim.open_gate()
    shim.wait(10)
    shim.close()
    with pytest.raises(ShimFailed, match="has its result already"):
        stage.forks.fork_shim(spec)
    assert marks(stage) == 1


def test_a_run_without_a_folder_is_refused_in_a_sentence(stage: Stage) -> None:
    spec = stage.spec("true", run_dir="/nonexistent/run")
    with pytest.raises(
        ShimFailed, match="cannot prepare /nonexistent/run: No such file or directory"
    ):
        stage.forks.fork_shim(spec)


def test_many_threads_get_a_shim_each(stage: Stage) -> None:
    specs = [stage.spec("sh", "-c", f"echo {number}") for number in range(24)]

    def run(spec: ShimSpec) -> bytes:
        shim = stage.forks.fork_shim(spec)
        shim.open_gate()
        assert shim.wait(20)
        shim.close()
        return Path(spec.run_dir, "stdout").read_bytes()

    with ThreadPoolExecutor(8) as crowd:
        assert list(crowd.map(run, specs)) == [b"%d\n" % number for number in range(24)]


def test_a_large_specification_arrives_whole(stage: Stage) -> None:
    long = ["x" * 100_000] * 12
    scene = stage.start(
        "sh",
        "-c",
        'echo $# ${#1}; printf %s "$BIG" | wc -c',
        "sh",
        *long,
        env={"PATH": "/bin:/usr/bin", "BIG": "y" * 100_000},
    )
    assert scene.result().exit_code == 0
    assert scene.stdout() == b"12 100000\n100000\n"


def test_a_byte_that_a_dead_shim_left_unread_proves_that_nothing_ran(stage: Stage) -> None:
    """Looped: the kill comes before, while or after the gate opens."""
    for _ in range(20):
        shim = stage.ready(*MARK).shim
        os.kill(shim.identity.pid, signal.SIGKILL)
        try:
            shim.open_gate()
        except GateShut:
            continue
        assert shim.wait(5)
        assert shim.has_never_started()
    assert marks(stage) == 0


def test_a_byte_that_was_read_proves_nothing(stage: Stage) -> None:
    scene = stage.start(*MARK)
    assert scene.result().started
    assert not scene.shim.has_never_started()

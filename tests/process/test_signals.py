"""One interrupt reaches the child, then comes the grace, then the kill.

A second one kills at once.
"""

import os
import pty
import signal
import sys
import time
from pathlib import Path

import pytest

from adjourn.process.shim import read_result
from tests.process.scene import PYTHON, SOON, Stage, alive_with, eventually

COUNT = """
import os, signal, sys, time
def count(number, frame):
    os.write(1, b"%d " % number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, count)
os.write(1, b"ready ")
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.01)
sys.exit(3)
"""


def is_ready(stdout: Path) -> bool:
    return stdout.exists() and stdout.read_bytes() == b"ready "


def lines(data: bytes) -> list[str]:
    return data.decode().split()


@pytest.mark.parametrize("sent", (signal.SIGINT, signal.SIGTERM))
@pytest.mark.parametrize("wanted", (signal.SIGINT, signal.SIGTERM))
def test_the_first_interrupt_reaches_the_child_once_as_the_kind_it_wants(
    stage: Stage, sent: int, wanted: int
) -> None:
    scene = stage.start(*PYTHON, "-c", COUNT, "0.6", interrupt=int(wanted), grace=10.0)
    assert eventually(scene.stdout) == b"ready "
    os.kill(scene.shim.identity.pid, sent)
    result = scene.result()
    assert lines(scene.stdout()) == ["ready", str(int(wanted))]
    assert (result.exit_code, result.interrupted, result.killed) == (3, True, None)


def test_each_member_of_the_childs_group_gets_one(stage: Stage) -> None:
    quiet = COUNT.replace("%d ", "child %d ")
    scene = stage.start(
        "sh",
        "-c",
        'trap "echo shell" INT; "$@" & wait; wait',
        "sh",
        *PYTHON,
        "-c",
        quiet,
        "0.6",
        grace=10.0,
    )
    assert eventually(scene.stdout) == b"ready "
    scene.shim.interrupt()
    scene.result()
    # A shell starts what runs in the background with interrupts ignored; Python sets its own
    # handler all the same.
    assert sorted(lines(scene.stdout())) == ["2", "child", "ready", "shell"]


def test_a_child_that_does_not_go_is_killed_after_the_grace(stage: Stage) -> None:
    scene = stage.start(*PYTHON, "-c", COUNT, "60", grace=0.5)
    assert eventually(scene.stdout) == b"ready "
    began = time.monotonic()
    scene.shim.interrupt()
    result = scene.result()
    assert 0.5 <= time.monotonic() - began < 2.5
    assert (result.signal, result.interrupted, result.killed) == (signal.SIGKILL, True, "grace")
    assert lines(scene.stdout()) == ["ready", "2"]


def test_a_second_interrupt_kills_at_once(stage: Stage) -> None:
    scene = stage.start(*PYTHON, "-c", COUNT, "60", grace=30.0)
    assert eventually(scene.stdout) == b"ready "
    scene.shim.interrupt()
    assert eventually(lambda: len(scene.stdout().split()) == 2)
    began = time.monotonic()
    scene.shim.interrupt()
    result = scene.result()
    assert time.monotonic() - began < 2
    assert (result.signal, result.interrupted, result.killed) == (
        signal.SIGKILL,
        True,
        "second interrupt",
    )
    assert lines(scene.stdout()) == ["ready", "2"]


def test_a_kill_kills_at_once_and_is_no_interrupt(stage: Stage) -> None:
    scene = stage.start(*PYTHON, "-c", COUNT, "60", grace=30.0)
    assert eventually(scene.stdout) == b"ready "
    scene.shim.kill()
    result = scene.result()
    assert (result.signal, result.interrupted, result.killed) == (signal.SIGKILL, False, "kill")


def test_a_hangup_is_not_for_the_shim(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo ready; sleep 0.3; exit 4")
    assert eventually(scene.stdout)
    os.kill(scene.shim.identity.pid, signal.SIGHUP)
    result = scene.result()
    assert (result.exit_code, result.interrupted) == (4, False)


def test_an_interrupt_that_comes_too_late_is_not_told(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "exit 5")
    assert scene.shim.wait(SOON)
    scene.shim.interrupt()
    scene.shim.kill()
    result = scene.result()
    assert (result.exit_code, result.interrupted, result.killed) == (5, False, None)


def test_an_interrupt_at_any_moment_leaves_a_true_result(stage: Stage, sweep: str) -> None:
    """Whatever the moment: not started, ended by itself, or ended by the one interrupt.

    Never anything between.
    """
    seen = set[str]()
    for number in range({"ci": 60, "full": 600}[sweep]):
        scene = stage.start("sh", "-c", "echo on; sleep 0.005; exit 6")
        time.sleep(number % 30 / 2000)
        scene.shim.interrupt()
        result = scene.result()
        ended = (result.started, result.exit_code, result.signal, result.interrupted)
        assert ended in {
            (False, None, None, True),
            (True, None, 2, True),
            (True, 6, None, True),
            (True, 6, None, False),
        }
        assert result.killed is None
        if not result.started:
            assert scene.stdout() == b""
        seen.add(str(ended))
    assert len(seen) > 1


SUPERVISE = """
import os, signal, sys
sys.path[:0] = sys.argv[1].split(":")
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import ShimSpec
shim = ForkServer.start().fork_shim(ShimSpec(run_dir=sys.argv[2], argv=tuple(sys.argv[3:]), cwd="/", env={}, grace=10.0))
signal.signal(signal.SIGINT, lambda number, frame: shim.interrupt())
shim.open_gate()
print("running", flush=True)
shim.wait(None)
"""


def test_in_a_terminal_one_ctrl_c_is_one_interrupt(stage: Stage) -> None:
    """In a real pty: exactly one interrupt reaches the child per first Ctrl+C."""
    for _ in range(5):
        spec = stage.spec()
        path = ":".join(entry for entry in sys.path if entry)
        pid, terminal = pty.fork()
        if pid == 0:
            child = (*PYTHON, "-c", COUNT, "0.5")
            os.execv(sys.executable, [sys.executable, "-c", SUPERVISE, path, spec.run_dir, *child])
        stdout = Path(spec.run_dir, "stdout")
        assert eventually(is_ready, stdout), os.read(terminal, 9999)
        os.write(terminal, b"\x03")
        result = eventually(read_result, spec.run_dir)
        os.waitpid(pid, 0)
        os.close(terminal)
        assert result is not None
        assert (result.exit_code, result.interrupted, result.killed) == (3, True, None)
        assert lines(stdout.read_bytes()) == ["ready", "2"]
    assert not alive_with(str(stage.folder))

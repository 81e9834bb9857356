"""A full disk costs output, never the result; before the start, it is a sentence."""

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import ShimFailed, read_result
from tests.needs import missing, needs
from tests.process.scene import PYTHON, Stage, alive_with, eventually

SMALL = 256 * 1024


@pytest.fixture
def small(forks: ForkServer, tmp_path: Path) -> Iterator[Stage]:
    """Return a stage on a disk of a quarter of a mebibyte."""
    if os.geteuid() != 0:
        missing("the right to mount")
    mount = subprocess.run(
        [needs("mount"), "-t", "tmpfs", "-o", f"size={SMALL}", "none", tmp_path],
        check=False,
        capture_output=True,
    )
    if mount.returncode:
        missing("the right to mount")
    stage = Stage(forks, tmp_path)
    yield stage
    stage.clear()
    subprocess.run([needs("umount"), "--lazy", tmp_path], check=True)


def fill(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(b"x" * 4096):
                pass
        except OSError:
            return


def test_no_room_at_the_start_is_told_and_nothing_is_left(small: Stage) -> None:
    spec = small.spec("sleep", "4242.5")
    fill(small.folder)
    with pytest.raises(ShimFailed, match="No space left on device"):
        small.forks.fork_shim(spec)
    assert not alive_with("4242.5")
    (small.folder / "ballast").unlink()
    shim = small.forks.fork_shim(spec)
    shim.close()


def test_output_that_finds_no_room_is_counted_and_the_child_goes_on(small: Stage) -> None:
    program = "import sys; sys.stdout.write('x' * 5_000_000); sys.stdout.flush(); sys.stderr.write('end'); sys.exit(7)"
    result = small.run(*PYTHON, "-c", program)
    assert (result.exit_code, result.stdout_bytes) == (7, 5_000_000)
    kept = (small.folder / "run-0" / "stdout").stat().st_size
    assert 0 < kept < SMALL
    assert result.stdout_left_out == 5_000_000 - kept
    assert result.stderr_bytes == 3


def test_a_disk_full_exactly_at_the_result_loses_nothing(small: Stage) -> None:
    for code in range(3):
        (small.folder / "ballast").unlink(missing_ok=True)
        scene = small.start(
            "sh", "-c", f"cat /dev/zero > ballast; echo lost; exit {code}", cwd=str(small.folder)
        )
        assert scene.result().exit_code == code


def test_a_disk_that_fills_up_again_and_again_loses_nothing(small: Stage) -> None:
    (small.folder / "ballast").touch()
    scene = small.start("sh", "-c", "echo first; sleep 0.3; echo second")
    assert eventually(scene.stdout)
    fill(small.folder)
    result = scene.result()
    assert (result.exit_code, result.stdout_bytes) == (0, 13)
    # Both lines fit into the block that the first one took.
    assert scene.stdout() == b"first\nsecond\n"


def test_a_disk_that_refuses_the_result_is_asked_until_it_takes_it(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo on; sleep 0.2; echo off; exit 8")
    assert eventually(scene.stdout)
    shim = scene.shim.identity.pid
    _, most = resource.prlimit(shim, resource.RLIMIT_FSIZE)
    resource.prlimit(shim, resource.RLIMIT_FSIZE, (0, most))
    assert not scene.shim.wait(1)
    assert read_result(str(scene.run_dir)) is None
    resource.prlimit(shim, resource.RLIMIT_FSIZE, (most, most))
    result = scene.result()
    assert (result.exit_code, result.stdout_bytes, result.stdout_left_out) == (8, 7, 4)
    assert scene.stdout() == b"on\n"


def test_who_waits_for_room_may_be_sent_away(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo on; sleep 0.2")
    assert eventually(scene.stdout)
    resource.prlimit(scene.shim.identity.pid, resource.RLIMIT_FSIZE, (0, 0))
    assert not scene.shim.wait(0.6)
    scene.shim.kill()
    assert scene.shim.wait(5)
    assert read_result(str(scene.run_dir)) is None

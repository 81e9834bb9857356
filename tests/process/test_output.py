"""Output goes to files as bytes: soon, capped, and never at the price of the result."""

import os
import re
import threading
import time
from pathlib import Path

import pytest

from adjourn.process.shim import read_record
from adjourn.process.shim_side.output import TAIL, Output
from tests.process.scene import Stage, eventually

MIB = 1024 * 1024
GAP = re.compile(rb"\n\[adjourn: (\d+) bytes left out here\]\n")


def test_streams_are_kept_apart_byte_for_byte(stage: Stage) -> None:
    scene = stage.start("sh", "-c", r"printf 'caf\351 \377\000\n'; printf '\200 err' >&2")
    result = scene.result()
    assert scene.stdout() == b"caf\xe9 \xff\x00\n"
    assert scene.stderr() == b"\x80 err"
    assert (
        result.stdout_bytes,
        result.stderr_bytes,
        result.stdout_left_out,
        result.stderr_left_out,
    ) == (8, 5, 0, 0)
    for name in ("stdout", "stderr", "result.json", "shim.json", "shim.lock"):
        assert (scene.run_dir / name).stat().st_mode & 0o777 == 0o600


def test_a_follower_sees_output_while_the_child_runs(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo one; sleep 60")
    began = time.monotonic()
    assert eventually(scene.stdout) == b"one\n"
    assert time.monotonic() - began < 2
    assert not scene.shim.wait(0)


@pytest.mark.parametrize("over", (-1, 0, 1, 1000, TAIL))
def test_head_and_tail_are_kept_and_the_gap_is_counted(stage: Stage, over: int) -> None:
    cap = 100_000
    size = cap + TAIL + over
    whole = b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]
    (stage.folder / "whole").write_bytes(whole)
    scene = stage.start("cat", "whole", output_cap=cap)
    result = scene.result()
    left_out = max(0, over)
    gap = b"\n[adjourn: %d bytes left out here]\n" % left_out if left_out else b""
    assert (result.stdout_bytes, result.stdout_left_out) == (size, left_out)
    assert scene.stdout() == whole[:cap] + gap + whole[cap + left_out :]


def test_a_gibibyte_takes_seconds_and_little_memory(stage: Stage) -> None:
    """A command that prints 1 GiB fills neither the disk nor the memory."""
    began = time.monotonic()
    scene = stage.start("sh", "-c", "head -c 1073741824 /dev/zero; echo end")
    peak = 0
    while not scene.shim.wait(0.02):
        peak = max(peak, rss_of(scene.shim.identity.pid))
    took = time.monotonic() - began
    result = scene.result()
    assert (result.exit_code, result.stdout_bytes) == (0, 1024 * MIB + 4)
    assert result.stdout_left_out == 1024 * MIB + 4 - 16 * MIB - TAIL
    assert scene.stdout().endswith(b"\0end\n")
    assert os.path.getsize(scene.run_dir / "stdout") < 18 * MIB
    print(f"1 GiB of output: {took:.1f} s")
    assert took < 30
    assert peak < rss_of(os.getpid()) + 16 * MIB


def rss_of(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def test_the_end_of_the_child_is_the_end_though_a_grandchild_holds_the_pipe(stage: Stage) -> None:
    for command in (
        "sleep 60 & echo done",
        "(setsid sleep 60 &) ; echo done",
        "nohup sh -c 'while :; do echo x; done' & echo done",
    ):
        began = time.monotonic()
        scene = stage.start("sh", "-c", command)
        assert scene.result().exit_code == 0
        assert time.monotonic() - began < 3
        assert scene.stdout().startswith((b"done\n", b"x\n"))
        assert b"done\n" in scene.stdout()


def test_a_stranger_who_writes_for_ever_keeps_nobody_waiting(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo mine; sleep 0.5")
    assert eventually(scene.stdout)
    record = read_record(str(scene.run_dir))
    assert record is not None
    stranger = os.open(f"/proc/{record.child}/fd/1", os.O_WRONLY)

    def write_for_ever() -> None:
        try:
            while True:
                os.write(stranger, b"y" * 4096)
        except BrokenPipeError:
            os.close(stranger)

    thread = threading.Thread(target=write_for_ever)
    thread.start()
    assert scene.result().exit_code == 0
    thread.join(10)
    assert not thread.is_alive()


def test_what_was_printed_just_before_the_end_is_there(stage: Stage) -> None:
    for _ in range(20):
        scene = stage.start("sh", "-c", "head -c 300000 /dev/zero; kill -9 $$")
        assert scene.result().signal == 9
        assert len(scene.stdout()) == 300000


def test_a_child_that_closes_its_output_is_waited_for_all_the_same(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 7")
    assert scene.result().exit_code == 7


def test_a_disk_that_refuses_ends_the_head_and_nothing_else() -> None:
    output = Output("/dev/full", cap=1000)
    os.write(output.child_end, b"x" * 5000)
    os.close(output.child_end)
    while output.pump():
        pass
    output.finish()
    assert (output.total, output.left_out) == (5000, 5000)

"""A worker on a disk that is full for a while: it says so, loses nothing, and goes on."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.disks import fill, shell_on_small_disk
from tests.e2e.shell import Shell, until


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shell]:
    """Return a shell on a small disk of its own."""
    with shell_on_small_disk(tmp_path / "disk", kilobytes=2048) as shell:
        yield shell


def leave_no_room_in_the_log(shell: Shell) -> None:
    """Give back what the write-ahead log has reserved on the disk."""
    with closing(sqlite3.connect(shell.store / "adjourn.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.one_machine("a database does not lie on the disk of the workspace")
def test_a_worker_outlives_an_error_of_the_store_and_reports_when_it_can(
    disk: Shell, tmp_path: Path
) -> None:
    """C-R13: the error is logged, and the next row is looked at."""
    disk.json("run", "--", "true")
    (disk.store / "supervision.yaml").write_text("poll_interval: 0.2\n")
    log = tmp_path / "log"
    with log.open("wb") as file:
        worker = disk.start("worker", stdout=subprocess.DEVNULL, stderr=file)
    until(lambda: bool(disk.json("worker", "--status")["workers"]), what="the worker is there")
    task = disk.json(
        "run", "--detach", "--", "sh", "-c", "until [ -e ../go ]; do sleep 0.05; done"
    )["task_id"]
    until(lambda: disk.state(task) == "running", what="it runs")
    leave_no_room_in_the_log(disk)
    filler = fill(disk.place)
    (tmp_path / "go").touch()
    until(lambda: "store error" in log.read_text(), what="the worker says that the disk is full")
    assert worker.poll() is None
    filler.unlink()
    until(lambda: disk.state(task) == "succeeded", what="it was reported")
    disk.adjourn("wait", disk.json("run", "--detach", "--", "true")["task_id"])
    worker.terminate()
    assert worker.wait(timeout=30) == 0

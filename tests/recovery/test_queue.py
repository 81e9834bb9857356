"""A writer that is stopped inside its commit is named; what dead supervisors left is removed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.shell import ADJOURN, Shell, until
from tests.recovery.workers import a_worker, log_of

pytestmark = pytest.mark.one_machine("a database names those who block others itself")

# Holds the queue as `adjourn worker` does in a commit, and can be stopped there.
HOLD = """
import sys, time
sys.argv = ["adjourn", "worker"]
from adjourn.stores.sqlite.store import SqliteStore
store = SqliteStore(sys.argv_root)
with store.change():
    print("held", flush=True)
    time.sleep(3600)
"""


@contextmanager
def a_writer_in_its_commit(shell: Shell) -> Iterator[int]:
    """Have a process called `adjourn worker` that holds the queue of writers."""
    code = HOLD.replace("sys.argv_root", repr(str(shell.store)))
    script = shell.place / "adjourn"
    script.write_text(code)
    python = str(ADJOURN.with_name("python"))
    process = subprocess.Popen(
        [python, str(script), "worker", "--token=secret"],
        cwd="/",
        env=shell.environment,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def test_nobody_waits_for_a_stopped_writer_without_a_word(shell: Shell) -> None:
    ask = shell.paused(shell.agent("approved.sh"))["asks"][0]["id"]
    with a_writer_in_its_commit(shell) as pid:
        os.kill(pid, signal.SIGSTOP)
        waiting = [shell.start("approve", ask), shell.start("run", "--", "true")]
        time.sleep(7)
        assert [each.poll() for each in waiting] == [None, None], "they wait on"
        found = shell.adjourn("doctor", expect=1).out
        assert f"process {pid} (adjourn worker) holds the store and is stopped" in found
        assert f"kill -CONT {pid}" in found
    for each in waiting:
        _, err = each.communicate(timeout=30)
        assert each.returncode == 0
        said = err.decode().splitlines()
        assert said[0].startswith(
            f"adjourn: waiting for the store: process {pid} (adjourn worker) has held it for "
        )
        assert said[0].endswith("; it is stopped")
        assert said[1] == f"  try: kill -CONT {pid}"
        assert len(said) == 2, "once"
        assert "secret" not in err.decode()


def test_a_worker_logs_whom_it_waits_for(shell: Shell) -> None:
    with a_worker(shell):
        task = shell.detached("sh", "-c", "until [ -e go ]; do sleep 0.05; done")
        with a_writer_in_its_commit(shell) as pid:
            (shell.place / "go").touch()
            until(lambda: "store slow" in log_of(shell), what="the worker says whom it waits for")
            assert f"process {pid} (adjourn worker) has held it" in log_of(shell)
        until(lambda: shell.state(task) == "succeeded", what="it was reported")


def test_a_short_wait_says_nothing(shell: Shell) -> None:
    ask = shell.paused(shell.agent("approved.sh"))["asks"][0]["id"]
    with a_writer_in_its_commit(shell):
        waiting = shell.start("approve", ask)
        time.sleep(2)
    _, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, err) == (0, b"")


def test_prune_removes_the_locks_of_dead_supervisors_and_no_others(shell: Shell) -> None:
    locks = shell.store / "supervisors"
    with a_worker(shell):
        for name in ("second", "third"):
            with a_worker(shell, name=name) as worker:
                os.kill(worker.pid, signal.SIGKILL)
                worker.wait()
        (locks / "young.lock").touch()  # somebody is about to hold it
        (locks / "odd.lock").mkdir()  # no lock at all, and no reason to stop
        assert shell.json("prune", "--dry-run")["locks_removed"] == 2
        assert "Removed 2 locks of dead supervisors." in shell.adjourn("prune").out
        assert len(list(locks.iterdir())) == 3
        assert len(shell.json("worker", "--status")["workers"]) == 1


def test_prune_leaves_the_lock_of_a_dead_supervisor_whose_run_goes_on(shell: Shell) -> None:
    task = shell.detached("sleep", "60")
    os.kill(shell.supervisor(f"{task}.1"), signal.SIGKILL)
    assert shell.json("prune")["locks_removed"] == 0
    assert shell.state(task) == "running"
    shell.adjourn("cancel", task)
    assert shell.json("prune")["locks_removed"] == 1

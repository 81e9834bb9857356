"""A `result.json` that is no plain, small file of ours stops nothing.

Its own call is uncertain, and all others go on.
"""

import contextlib
import os
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until
from tests.needs import missing
from tests.recovery.workers import UID, user_shell


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x")


def _link_to_result(path: Path) -> None:
    other = path.with_name("elsewhere.json")
    other.write_text('{"started": true, "exit_code": 0}')
    path.symlink_to(other)


def _socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)  # the whole path may be too long for a socket


def _of_another_user(path: Path) -> None:
    path.write_text('{"started": true, "exit_code": 0}')
    os.chown(path, 12345, 12345)


def _not_started_says_another_user(path: Path) -> None:
    path.write_text('{"started": false}')
    os.chown(path, 12345, 12345)


def _one_gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"started": true, "exit_code": 0}')
        file.truncate(1 << 30)


BAD: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "directory": _directory,
    "link": _link_to_result,
    "link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "one gigabyte": _one_gigabyte,
    "not JSON": lambda path: path.write_bytes(b"\xff\x00{"),
    "not UTF-8 in a string": lambda path: path.write_bytes(
        b'{"started": true, "error": "\xff\xfe"}'
    ),
    "another shape": lambda path: path.write_bytes(b'["started"]'),
    "nested too deep": lambda path: path.write_bytes(b'{"a":' + b"[" * 100_000),
    "empty": lambda path: path.write_bytes(b""),
    "socket": _socket,
    "device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
    "of another user": _of_another_user,
    "nothing started, says another user": _not_started_says_another_user,
}


def _kill_run(shell: Shell, task: str) -> Path:
    """Kill everything of a run, so that only its files tell what became of it."""
    run = f"{task}.1"
    shim, supervisor = shell.shim(run), shell.supervisor(run)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(shim, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{shim}/fd").exists(), what="the shim is gone")
    return shell.store / "runs" / run


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_result_stops_no_command_and_no_other_task(shell: Shell, kind: str) -> None:
    if os.geteuid() != 0 and ("user" in kind or kind == "device"):
        missing("the right to make files of others")
    task = shell.detached("sleep", "60")
    place = _kill_run(shell, task)
    BAD[kind](place / "result.json")
    shell.adjourn("tasks")
    assert shell.state(task) == "waiting"
    (ask,) = shell.inbox()
    assert (ask["task_id"], ask["kind"]) == (task, "uncertain")
    assert shell.adjourn("run", "--", "echo", "on").out == "on\n"
    shell.adjourn("settle", f"{task}.tc_1", "it-did-not")
    assert shell.state(task) == "paused"


@pytest.mark.parametrize("name", ["shim.lock", "shim.json", "stdout", "stderr", "shim.tmp"])
def test_no_other_file_of_a_dead_run_stops_a_command_by_being_a_fifo(
    shell: Shell, name: str
) -> None:
    task = shell.detached("sleep", "60")
    place = _kill_run(shell, task)
    (place / name).unlink(missing_ok=True)
    os.mkfifo(place / name)
    shell.adjourn("tasks")
    assert shell.state(task) == "waiting"


def test_a_process_that_makes_its_own_output_a_fifo_ends_as_it_ended(shell: Shell) -> None:
    swap = 'cd "$ADJOURN_STORE/runs/$ADJOURN_RUN_ID" && rm stdout && mkfifo stdout'
    shell.adjourn("run", "--", "sh", "-c", swap)


@pytest.mark.one_machine("the files of a run are on this machine")
def test_a_result_that_may_not_be_read_stops_nothing_either() -> None:
    """A file of root's in the directory of an ordinary user's run, who has no right to read it."""
    with user_shell() as shell:
        task = shell.detached("sleep", "60")
        place = _kill_run(shell, task)
        (place / "result.json").write_text('{"started": true, "exit_code": 0}')
        (place / "result.json").chmod(0)
        assert os.stat(place).st_uid == UID
        shell.adjourn("tasks")
        assert shell.state(task) == "waiting"

"""A daemon with a clean environment outlives its run only where there are no control groups, and doctor says so."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from adjourn.process.cgroup import usable_folder
from tests.e2e.shell import Shell, parent_of, until
from tests.needs import missing
from tests.recovery.workers import user_shell

pytestmark = pytest.mark.one_machine("it kills processes of this machine")
DAEMON = """
import os, sys, time
if os.fork():
    time.sleep(60)
os.setsid()
if os.fork():
    os._exit(0)
null = os.open(os.devnull, os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
os.closerange(3, 100)
os.chdir("/")
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""


def _daemons(mark: str) -> list[int]:
    found: list[int] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if words == f"sleep\0{mark}\0".encode():
            found.append(int(entry))
    return found


def _lose_a_run(shell: Shell, mark: str, *, kills_server: bool) -> None:
    """Have a run whose daemon is up, and kill its shim, and the fork server that would end what the shim left."""
    (shell.place / "daemon.py").write_text(DAEMON)
    task = shell.detached(sys.executable, "daemon.py", mark)
    until(lambda: bool(_daemons(mark)), what="the daemon is up")
    shim = json.loads((shell.store / "runs" / f"{task}.1" / "shim.json").read_text())["pid"]
    server = parent_of(shim)
    assert Path(f"/proc/{server}/comm").read_text() == "adjourn-forks\n"
    if kills_server:
        os.kill(server, signal.SIGKILL)
    os.kill(shim, signal.SIGKILL)
    assert "did its command run to the end?" in shell.adjourn("wait", task, expect=10).out


def _cgroups_line(shell: Shell) -> str:
    return next(
        line
        for line in shell.adjourn("doctor", expect=None).out.splitlines()
        if " cgroups " in line
    )


def test_without_control_groups_a_daemon_outlives_shim_and_fork_server_and_doctor_warns() -> None:
    with user_shell() as shell:
        _lose_a_run(shell, "61.5", kills_server=False)
        until(lambda: not _daemons("61.5"), what="the fork server has ended it")
        _lose_a_run(shell, "62.5", kills_server=True)
        left = _daemons("62.5")
        for daemon in left:
            os.kill(daemon, signal.SIGKILL)
        assert len(left) == 1, "it is ended now: say so in docs/how-to/recover-after-a-crash.md"
        assert "no control groups can be made here" in _cgroups_line(shell)


def test_with_control_groups_no_daemon_outlives_its_run(shell: Shell) -> None:
    if usable_folder() is None:
        missing("the right to make control groups")
    _lose_a_run(shell, "63.5", kills_server=True)
    until(lambda: not _daemons("63.5"), what="it was ended")
    assert "each run gets a control group" in _cgroups_line(shell)

"""A fork server or a shim that is stopped blocks nobody for ever, fails no task, and starts nothing later."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import identify, is_alive
from adjourn.process.shim import MachineFailed, ShimSpec
from tests.e2e.shell import Shell, until
from tests.recovery.workers import a_worker, approved, fork_servers_of, log_of, states

pytestmark = pytest.mark.timeout(1800)
SHARES = {"ci": 4, "full": 40}  # rounds
COMMAND = ("sh", "-c", 'echo "$ADJOURN_TASK_ID" >> effects')


def _spec(place: Path) -> ShimSpec:
    place.mkdir()
    return ShimSpec(run_dir=str(place), argv=("touch", "ran"), cwd=str(place), env=dict(os.environ))


def test_a_stopped_fork_server_is_killed_and_replaced(tmp_path: Path) -> None:
    server = ForkServer.start()
    first = identify(server.pid)
    assert first
    server.fork_shim(_spec(tmp_path / "one")).close()
    os.kill(server.pid, signal.SIGSTOP)
    with pytest.raises(MachineFailed, match="did not answer"):
        server.fork_shim(_spec(tmp_path / "two"))
    assert not is_alive(first)
    shim = server.fork_shim(_spec(tmp_path / "three"))
    assert not Path(f"/proc/{first.pid}").exists(), "it was not reaped"
    shim.open_gate()
    assert shim.wait(20)
    shim.close()
    server.close()
    assert [place.parent.name for place in tmp_path.glob("*/ran")] == ["three"]


def test_a_worker_whose_fork_server_is_stopped_fails_no_task(shell: Shell) -> None:
    first = approved(shell, 2, *COMMAND)
    with a_worker(shell) as worker:
        until(lambda: set(states(shell, first)) == {"succeeded"}, what="the first tasks ran")
        (server,) = fork_servers_of(worker.pid)
        os.kill(server, signal.SIGSTOP)
        more = approved(shell, 4, *COMMAND)
        until(lambda: set(states(shell, more)) == {"succeeded"}, what="the others ran", seconds=40)
        assert fork_servers_of(worker.pid) != [server]
    assert Counter(shell.lines("effects")) == Counter(first + more)
    assert "did not answer" in log_of(shell)


@pytest.mark.one_machine("what is stopped is a process of this machine")
def test_no_stop_at_any_moment_starts_anything_twice_or_fails_it(shell: Shell, sweep: str) -> None:
    """Fork servers and shims at their gates are stopped, and some of them are woken.

    Too late, or just in time.
    """
    chance = random.Random(21)
    ended: Counter[int] = Counter()
    tasks: list[str] = []
    for round_ in range(SHARES[sweep]):
        (task,) = approved(shell, 1, *COMMAND)
        tasks.append(task)
        with (shell.place / "resume.log").open("ab") as log:
            process = shell.start("resume", task, stdout=subprocess.DEVNULL, stderr=log)
        victim = _some_server_or_shim(process, wants_shim=bool(round_ % 2))
        time.sleep(chance.choice([0.0, 0.001, 0.003, 0.01]))
        if victim:
            _signal(victim, signal.SIGSTOP)
            time.sleep(chance.choice([0.05, 1.0, 11.0, 31.0 if round_ % 2 else 12.0]))
            _signal(victim, signal.SIGCONT)
        ended[process.wait(timeout=90)] += 1
    shell.adjourn("worker", "--once")
    until(lambda: set(states(shell, tasks)) == {"succeeded"}, what="all have run", seconds=40)
    print(f"\n{len(tasks)} stops: exit codes {dict(ended)}")
    assert Counter(shell.lines("effects")) == Counter(tasks)


def _some_server_or_shim(process: "subprocess.Popen[bytes]", *, wants_shim: bool) -> int:
    """Return a fork server as soon as there is one, or its first child; 0 if it was faster."""
    while process.poll() is None:
        for server in fork_servers_of(process.pid):
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
                if children or not wants_shim:
                    return int(children[0]) if wants_shim else server
    return 0


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

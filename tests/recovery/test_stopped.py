"""A fork server or a shim that is stopped blocks nobody for ever, fails no task, and starts nothing later."""

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import identify, is_alive
from adjourn.process.shim import MachineFailed, ShimSpec
from tests.agent.desk import command, desk, finish, say, use
from tests.agent.test_warm import done, warm_parents
from tests.agent.test_warm import worker as agent_worker
from tests.e2e.shell import Shell, until
from tests.needs import missing
from tests.recovery.workers import a_worker, approved, fork_servers_of, log_of, states

pytestmark = pytest.mark.timeout(1800)
SHARES = {"ci": 4, "full": 40}  # rounds
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
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


def test_a_worker_whose_warm_fork_server_is_stopped_replaces_it_and_runs_the_agent_once(
    tmp_path: Path,
) -> None:
    """The agent goes on, its approved call runs once, and the next agents have a warm parent again."""
    turns = (use(command("echo ran >> effects", "tc_1")), say("Go on?"), finish())
    with desk(tmp_path, *turns) as person, agent_worker(person) as process:
        task = person.json("run", "--pause-on-approval", "--detach", "deploy it")["task_id"]
        assert done(person, task) == "waiting"
        until(lambda: len(warm_parents(process.pid)) == 1, what="the warm parent is there")
        (stopped,) = warm_parents(process.pid)
        until(lambda: is_idle(stopped), what="it has imported everything", seconds=40)
        os.kill(stopped, signal.SIGSTOP)
        person.adjourn("approve", person.inbox()[0]["id"])
        until(lambda: bool(person.inbox()), what="it asks", seconds=60)
        assert person.lines("effects") == ["ran"]
        assert stopped not in warm_parents(process.pid)
        person.adjourn("answer", person.inbox()[0]["id"], "yes")
        assert done(person, task) == "succeeded"
        until(lambda: len(warm_parents(process.pid)) == 1, what="another warm parent is there")
        assert process.poll() is None
    assert person.lines("effects") == ["ran"]


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


Stop = Callable[[int], None]


def stopped_by_a_signal(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def stopped_by_a_tracer(pid: int) -> None:
    """Stop a process as a debugger does: SIGCONT does not wake it."""
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if libc.ptrace(request, pid, 0, 0):
            missing("the right to trace a process")


@pytest.mark.serial  # the server must be stopped before it is asked for the shim
@pytest.mark.one_machine("what is stopped is a process of this machine")
@pytest.mark.parametrize("stop", [stopped_by_a_signal, stopped_by_a_tracer])
def test_who_is_told_to_stop_leaves_in_time_although_a_shim_is_stopped_at_its_gate(
    shell: Shell, stop: Stop
) -> None:
    """The supervisor is held until its shim stands at the gate; then it is told to stop."""
    while True:
        (task,) = approved(shell, 1, *COMMAND)
        process = shell.start("resume", task)
        (server,) = wait_for_children(process, partial(fork_servers_of, process.pid))
        os.kill(server, signal.SIGSTOP)
        if not (shell.store / "runs" / f"{task}.2").exists():
            break
        os.kill(server, signal.SIGCONT)  # it was asked for the shim before: the next one
        process.communicate(timeout=30)
    until((shell.store / "runs" / f"{task}.2").exists, what="its shim is wanted")
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(server, signal.SIGCONT)
    until((shell.store / "runs" / f"{task}.2" / "shim.json").exists, what="its shim is there")
    shim = shell.shim(f"{task}.2")
    until(lambda: state_of(shim) == "S", what="it waits at its gate")
    stop(shim)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 10, err
    assert f"adjourn resume {task}" in out.decode()
    assert states(shell, [task]) == ["paused"]
    assert task not in shell.lines("effects")
    shell.adjourn("resume", task, expect=10)  # an approval of what was stopped is spent
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task)
    assert shell.lines("effects").count(task) == 1


@pytest.mark.one_machine("what is stopped is a process of this machine")
def test_a_shim_that_is_stopped_while_its_command_runs_obeys_whoever_stops_it(shell: Shell) -> None:
    task = shell.detached("sh", "-c", "echo start >> effects; sleep 60")
    os.kill(shell.shim(f"{task}.1"), signal.SIGSTOP)
    shell.adjourn("pause", task)
    assert shell.state(task) == "paused"
    assert shell.lines("effects") == ["start"]


def wait_for_children(
    process: "subprocess.Popen[bytes]", find: Callable[[], list[int]]
) -> list[int]:
    until(lambda: bool(find()) or process.poll() is not None, what="they are there")
    return find()


def is_idle(pid: int) -> bool:
    """Return whether a process waits, and has used no processor time for half a second."""
    seen: set[str] = set()
    for _ in range(10):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seen.add(" ".join([words[0], *words[11:13]]))
        time.sleep(0.05)
    return len(seen) == 1 and seen.pop().startswith("S")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


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

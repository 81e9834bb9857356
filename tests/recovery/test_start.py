"""A start that fails for the machine's reason fails no task.

The task stays queued, and its approval is kept.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.contract.disks import fill, small_disk
from tests.driving.test_beside import START
from tests.e2e.shell import ADJOURN, Shell, until
from tests.recovery.workers import (
    UserShell,
    a_worker,
    approved,
    as_user,
    fork_servers_of,
    limit,
    log_of,
    states,
    user_shell,
)


@pytest.fixture
def user() -> Iterator[UserShell]:
    with user_shell() as shell:
        yield shell


def test_a_killed_fork_server_fails_no_approved_task(shell: Shell) -> None:
    tasks = approved(shell, 6, "sh", "-c", "echo ran >> effects")
    shell.json("run", "--", "true")
    with a_worker(shell) as worker:
        until(lambda: set(states(shell, tasks)) == {"succeeded"}, what="the first tasks ran")
        (server,) = fork_servers_of(worker.pid)
        os.kill(server, signal.SIGKILL)
        more = approved(shell, 6, "sh", "-c", "echo ran >> effects")
        until(lambda: not {"queued", "running"} & set(states(shell, more)), what="the others ended")
        assert states(shell, more) == ["succeeded"] * 6
        assert [server] != fork_servers_of(worker.pid)
        assert worker.poll() is None
    assert shell.lines("effects") == ["ran"] * 12


@pytest.mark.one_machine("it counts the processes of one user")
def test_a_machine_without_processes_fails_no_approved_task(user: UserShell) -> None:
    """15 s without processes failed 120 of 120."""
    tasks = approved(user, 12, "sh", "-c", "echo ran >> effects")
    user.be_alone()
    with a_worker(user, before=("prlimit", "--nproc=2:10000")) as worker:
        until(
            lambda: "not start" in log_of(user) or "holding back" in log_of(user),
            what="it cannot start one",
        )
        time.sleep(4)
        assert states(user, tasks) == ["queued"] * 12
        for pid in (worker.pid, *fork_servers_of(worker.pid)):
            limit(user, pid, "--nproc=10000:10000")
        until(lambda: set(states(user, tasks)) == {"succeeded"}, what="all ran", seconds=40)
    assert user.lines("effects") == ["ran"] * 12
    assert log_of(user).count("holding back") == 1


def test_a_worker_without_descriptors_fails_no_approved_task(shell: Shell) -> None:
    tasks = approved(shell, 8, "sh", "-c", "echo ran >> effects")
    script = shell.script("true")
    with a_worker(shell) as worker:
        until(lambda: set(states(shell, tasks)) == {"succeeded"}, what="the first tasks ran")
        limit(shell, worker.pid, "--nofile=4:")
        more = approved(shell, 8, script)
        time.sleep(3)
        assert worker.poll() is None, log_of(shell)
        assert states(shell, more) == ["queued"] * 8
        limit(shell, worker.pid, "--nofile=1024:")
        until(lambda: set(states(shell, more)) == {"succeeded"}, what="all ran", seconds=40)
    assert "Too many open files" in log_of(shell)
    assert all(len(shell.runs(task)) < 10 for task in more)


@pytest.mark.one_machine("it counts the processes of one user")
@pytest.mark.parametrize("most", [2, 3], ids=["no shim", "no child"])
def test_a_foreground_start_without_processes_keeps_the_approval(
    user: UserShell, most: int
) -> None:
    (task,) = approved(user, 1, "sh", "-c", "echo ran >> effects")
    for _ in range(4):
        user.be_alone()
        done = user.run("prlimit", f"--nproc={most}", str(ADJOURN), "resume", task, expect=1)
        assert "Resource temporarily unavailable" in done.err
        assert f"try: adjourn resume {task}" in done.err, done.err
        assert states(user, [task]) == ["queued"]
    user.line(f"adjourn resume {task}")
    assert user.lines("effects") == ["ran"]


@pytest.mark.one_machine("it counts the processes of one user")
def test_a_command_that_cannot_even_fork_its_server_says_so(user: UserShell) -> None:
    (task,) = approved(user, 1, "sh", "-c", "echo ran >> effects")
    done = user.run("prlimit", "--nproc=1", str(ADJOURN), "resume", task, expect=1)
    assert "no room for another process" in done.err
    assert "try: " in done.err
    assert states(user, [task]) == ["queued"]


@pytest.mark.one_machine("a database does not lie on the disk of the workspace")
def test_a_full_disk_of_the_runs_fails_no_approved_task(shell: Shell) -> None:
    """The store itself has room: only the directories of runs lie on the small disk."""
    tasks = approved(shell, 4, "sh", "-c", "echo ran >> effects")
    runs = shell.store / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    with small_disk(runs, kilobytes=64) as disk:
        filler = fill(disk)
        with a_worker(shell):
            until(lambda: "holding back" in log_of(shell), what="it holds back")
            time.sleep(2)
            assert states(shell, tasks) == ["queued"] * 4
            filler.unlink()
            until(lambda: set(states(shell, tasks)) == {"succeeded"}, what="all ran", seconds=40)
    assert shell.lines("effects") == ["ran"] * 4
    assert log_of(shell).count("holding back") == 1
    assert "No space left on device" in log_of(shell)


@pytest.mark.one_machine("it counts the processes of one user")
def test_a_worker_for_cron_leaves_when_the_machine_can_start_nothing(user: UserShell) -> None:
    tasks = approved(user, 2, "sh", "-c", "echo ran >> effects")
    user.be_alone()
    done = user.run("prlimit", "--nproc=2", str(ADJOURN), "worker", "--once", expect=1)
    assert "could not start task" in done.err
    assert states(user, tasks) == ["queued"] * 2


@pytest.mark.one_machine("it counts the processes of one user")
def test_a_task_that_is_to_be_canceled_does_not_wait_for_the_machine(user: UserShell) -> None:
    (task,) = approved(user, 1, "sh", "-c", "echo ran >> effects")
    user.be_alone()
    with a_worker(user, before=("prlimit", "--nproc=2:10000")):
        until(lambda: "holding back" in log_of(user), what="it holds back")
        user.adjourn("cancel", task)
        assert states(user, [task]) == ["canceled"]


@pytest.mark.one_machine("it counts the processes of one user")
def test_a_call_beside_an_agent_that_the_machine_cannot_start_has_not_failed(
    user: UserShell,
) -> None:
    """The agent waits; its call starts once there are processes again."""
    words = [sys.executable, str(START), str(user.store), '["echo ran >> effects"]']
    user.json("run", "--", "true")
    user.be_alone()
    # The supervisor, its fork server, the agent's shim and the agent: one more shim is one too
    # many.
    starved = subprocess.Popen(
        [*as_user(), "prlimit", "--nproc=4:10000", *words],
        cwd=user.place,
        env=user.environment,
        stdout=subprocess.PIPE,
    )
    until(lambda: bool(user.sql("SELECT 1 FROM call WHERE attempt > 1")), what="it was tried twice")
    assert user.lines("effects") == []
    for pid in (starved.pid, *fork_servers_of(starved.pid)):
        limit(user, pid, "--nproc=10000:10000")
    out, _ = starved.communicate(timeout=60)
    assert out.split()[1] == b"succeeded"
    assert user.lines("effects") == ["ran"]


@pytest.mark.one_machine("it counts the processes of one user")
@pytest.mark.parametrize("verb", ["worker", "resume"])
def test_a_call_beside_an_agent_that_is_held_back_is_not_silent(user: UserShell, verb: str) -> None:
    """Whoever supervises the agent prints the reason, once, and starts the call later."""
    user.json("run", "--", "true")
    words = [sys.executable, str(START), str(user.store), '["echo ran >> effects"]', "--queue"]
    task = user.run(*words).out.split()[0]
    user.be_alone()
    # A worker has one more: the server that keeps the agent's modules.
    arguments, most = ((verb,), 5) if verb == "worker" else ((verb, task), 4)
    with (user.place / "starved.log").open("wb") as log:
        starved = user.start(*arguments, before=("prlimit", f"--nproc={most}:10000"), stderr=log)
    try:
        until(
            lambda: "Resource temporarily" in log_of(user, "starved"), what="it prints the reason"
        )
        time.sleep(2)
        for pid in (starved.pid, *fork_servers_of(starved.pid)):
            limit(user, pid, "--nproc=10000:10000")
        until(lambda: states(user, [task]) == ["succeeded"], what="it ended", seconds=40)
    finally:
        starved.terminate()
        starved.wait(timeout=60)
    told = log_of(user, "starved")
    assert told.count("Resource temporarily unavailable") == 1, told
    assert f"{task}.1" in told
    assert user.lines("effects") == ["ran"]


def test_a_foreground_agent_survives_a_want_of_descriptors(shell: Shell) -> None:
    """Its supervisor prints what it lacks, and goes on when it has descriptors again."""
    shell.json("run", "--", "true")
    prompt = '["touch first; until [ -e go ]; do sleep 0.05; done"]\n["echo ran >> effects"]'
    words = [sys.executable, str(START), str(shell.store), prompt, "--queue"]
    task = shell.run(*words).out.split()[0]
    with (shell.place / "starved.log").open("wb") as log:
        starved = shell.start("resume", task, stdout=subprocess.DEVNULL, stderr=log)
    until((shell.place / "first").exists, what="the first call runs")
    limit(shell, starved.pid, "--nofile=4:")
    (shell.place / "go").touch()
    until(lambda: "oo many open files" in log_of(shell, "starved"), what="it prints the reason")
    time.sleep(1)
    assert starved.poll() is None, log_of(shell, "starved")
    limit(shell, starved.pid, "--nofile=1024:")
    assert starved.wait(timeout=60) == 0, log_of(shell, "starved")
    assert shell.lines("effects") == ["ran"]


@pytest.mark.one_machine("it counts the processes of one user")
@pytest.mark.parametrize(
    "most", [1, 2, 3, 4], ids=["no fork", "no copy", "no fork server", "no shim"]
)
def test_a_detached_supervisor_that_cannot_start_is_reported(user: UserShell, most: int) -> None:
    """The command that detaches it prints why, and every view names the command that helps."""
    user.json("run", "--", "true")
    user.be_alone()
    command = ("run", "--detach", "--", "sh", "-c", "echo ran >> effects")
    done = user.run("prlimit", f"--nproc={most}", str(ADJOURN), *command, expect=1)
    (task,) = (task["task_id"] for task in user.json("tasks", "--state", "queued")["tasks"])
    resume = f"adjourn resume {task}"
    assert "Resource temporarily unavailable" in done.err
    assert task in done.err
    assert f"try: {resume}\n" in done.err, done.err
    time.sleep(2.1)
    for words in (("tasks",), ("inbox",), ("show", task), ("doctor",)):
        told = user.adjourn(*words, expect=None)
        assert "no worker" in told.out, (words, told.out)
        assert resume in told.out, (words, told.out)
    user.line(resume)
    assert user.lines("effects") == ["ran"]
    for words in (("tasks",), ("inbox",), ("doctor",)):
        assert "no worker" not in user.adjourn(*words, expect=None).out


def test_a_command_that_is_not_there_fails_at_once(shell: Shell) -> None:
    """That is the command's own fault: nobody tries again."""
    with a_worker(shell):
        task = shell.json("run", "--detach", "--", "./not-there")["task_id"]
        until(lambda: states(shell, [task]) == ["failed"], what="it failed")
    assert len(shell.runs(task)) == 1


def test_a_worker_that_is_stopped_while_it_starts_tasks_leaves_the_others_queued(
    shell: Shell,
) -> None:
    """They are approved and nothing of them has begun.

    The next worker takes them, and nobody has to resume them.
    """
    tasks = approved(shell, 40, "sleep", "60")
    with a_worker(shell, "--max-active", "40") as worker:
        until(lambda: "started run" in log_of(shell), what="it has started the first")
        worker.terminate()
        worker.wait(timeout=60)
    begun = log_of(shell).count("started run")
    ended = states(shell, tasks)
    assert 0 < begun < len(tasks), "it was too fast to be stopped meanwhile"
    assert ended.count("paused") <= begun + 1, log_of(shell)  # one may have been on its way
    assert ended.count("paused") + ended.count("queued") == len(tasks)


def test_a_command_without_descriptors_is_told_in_one_sentence(shell: Shell) -> None:
    """What the child says is the reason; that it died of it is not a second one."""
    (task,) = approved(shell, 1, "sh", "-c", "echo ran >> effects")
    told: set[str] = set()
    for most in range(16, 30):
        words = ("prlimit", f"--nofile={most}:{most}", str(ADJOURN), "resume", task)
        done = shell.run(*words, expect=None)
        told.update(line for line in done.err.splitlines() if "could not start" in line)
        if states(shell, [task]) != ["queued"]:
            break
    assert states(shell, [task]) == ["succeeded"]
    assert told
    assert not [line for line in told if "commandcannot" in line]
    assert shell.lines("effects") == ["ran"]

"""Another PID namespace is not death.

While its shim holds its lock, a run is killed by nobody and started by nobody.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.shell import ADJOURN, Shell, until
from tests.needs import missing, needs

WORK = "echo $$ >> started; while [ ! -e go ]; do sleep 0.05; done; echo done >> ended"


@pytest.fixture
def sibling() -> list[str]:
    """Return the words that run a command in a PID namespace of its own, with a /proc of its own."""
    words = [needs("unshare"), "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        missing("the right to make a PID namespace")
    return words


def _begin(shell: Shell) -> str:
    """Start a task that works until it is told to end, and kill its supervisor."""
    shell.script(WORK, name="work.sh")
    task = shell.detached("./work.sh")
    until(lambda: bool(shell.lines("started")), what="it works")
    supervisor = shell.supervisor(f"{task}.1")
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{supervisor}/fd").exists(), what="its supervisor is gone")
    return task


def _is_untouched(shell: Shell, task: str) -> None:
    shim = shell.shim(f"{task}.1")
    os.kill(shim, 0)
    assert len(shell.lines("started")) == 1
    assert shell.lines("ended") == []


@pytest.mark.parametrize(
    "verb",
    [
        ("tasks",),
        ("inbox",),
        ("show", "{task}"),
        ("wait", "{task}", "--timeout", "1"),
        ("worker", "--once"),
    ],
)
def test_a_sibling_namespace_calls_no_living_run_lost(
    shell: Shell, sibling: list[str], verb: tuple[str, ...]
) -> None:
    task = _begin(shell)
    words = [word.format(task=task) for word in verb]
    for _ in range(2):
        shell.run(*sibling, str(ADJOURN), *words, expect=None)
        _is_untouched(shell, task)
    assert shell.state(task) == "running"
    (shell.place / "go").touch()
    shell.adjourn("wait", task)
    assert shell.lines("ended") == ["done"]
    assert len(shell.lines("started")) == 1


def test_a_sibling_namespace_reads_the_result_of_a_run_that_ended(
    shell: Shell, sibling: list[str]
) -> None:
    task = _begin(shell)
    shell.run(*sibling, str(ADJOURN), "tasks")
    (shell.place / "go").touch()
    until(lambda: bool(shell.lines("ended")), what="it has ended")
    until((shell.store / "runs" / f"{task}.1" / "result.json").exists, what="its result is there")
    time.sleep(0.2)
    shell.run(*sibling, str(ADJOURN), "tasks")
    assert shell.state(task) == "succeeded"


@contextmanager
def _container(shell: Shell, sibling: list[str]) -> Iterator[str]:
    """Start a task inside a namespace that lives on, kill its supervisor there, and yield the task's id."""
    shell.script(WORK, name="work.sh")
    inside = "adjourn run --detach -- ./work.sh > task; touch ready; exec sleep 300"
    with subprocess.Popen(
        [*sibling, "sh", "-c", inside], cwd=shell.place, env=shell.environment
    ) as container:
        try:
            until((shell.place / "ready").exists, what="the task is started")
            until(lambda: bool(shell.lines("started")), what="it works")
            (task,) = shell.lines("task")
            for pid, line in shell.processes().items():  # as the host sees them
                is_supervisor = Path(f"/proc/{pid}/comm").read_text() == "adjourn\n"
                if "adjourn run" in line and is_supervisor:
                    os.kill(pid, signal.SIGKILL)
            yield task
        finally:
            container.kill()


def test_the_host_calls_no_run_of_a_container_lost(shell: Shell, sibling: list[str]) -> None:
    with _container(shell, sibling) as task:
        for words in (("tasks",), ("show", task), ("worker", "--once")):
            shell.adjourn(*words, expect=None)
            assert len(shell.lines("started")) == 1
        assert shell.state(task) == "running"
        (shell.place / "go").touch()
        until(
            (shell.store / "runs" / f"{task}.1" / "result.json").exists, what="its result is there"
        )
        until(lambda: shell.state(task) == "succeeded", what="it has succeeded")
        assert shell.lines("ended") == ["done"]


def test_a_run_whose_container_is_gone_is_uncertain(shell: Shell, sibling: list[str]) -> None:
    """Then nobody holds the lock: this is death, and a person is asked."""
    with _container(shell, sibling) as task:
        pass
    until(lambda: shell.state(task) == "waiting", what="a person is asked")
    assert shell.inbox()[0]["kind"] == "uncertain"


def test_a_stop_from_a_sibling_namespace_is_carried_out_by_who_can(
    shell: Shell, sibling: list[str]
) -> None:
    """`cancel` from there signals nobody; it leaves its wish in the store, says so, and whoever sees the process does it.

    The store knows the place: it was used from there while nothing ran.
    """
    lines = [
        "adjourn run -- true",
        "touch ready",
        "until [ -e task ]; do sleep 0.05; done",
        "adjourn cancel $(cat task) 2> said",
        "echo $? > code.part; mv code.part code",
    ]
    words = [*sibling, "sh", "-c", "\n".join(lines)]
    with subprocess.Popen(words, cwd=shell.place, env=shell.environment) as container:
        try:
            until((shell.place / "ready").exists, what="the store was used from there")
            task = _begin(shell)
            (shell.place / "task.part").write_text(task)
            (shell.place / "task.part").rename(shell.place / "task")
            until((shell.place / "code").exists, what="it has called cancel")
        finally:
            container.kill()
    assert shell.lines("code") == ["4"]
    assert "another PID namespace" in (shell.place / "said").read_text()
    os.kill(shell.shim(f"{task}.1"), 0)
    shell.adjourn("worker", "--once")
    assert shell.state(task) == "canceled"


@pytest.mark.parametrize("verb", ["cancel", "pause"])
@pytest.mark.one_machine("a login may come from any container")
def test_a_sibling_namespace_that_is_new_stops_nothing(
    shell: Shell, sibling: list[str], verb: str
) -> None:
    """It could be part of the run, or of another one, and a run stops only what it started."""
    task = _begin(shell)
    told = shell.run(*sibling, str(ADJOURN), verb, task, expect=5)
    assert "its pid namespace is not one from which this store was used" in told.err
    assert shell.state(task) == "running"
    _is_untouched(shell, task)
    shell.adjourn(verb, task)
    assert shell.state(task) == {"cancel": "canceled", "pause": "paused"}[verb]

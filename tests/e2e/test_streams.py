"""Standard streams that are closed, full or gone: the exit code and the task stay what they are."""

import os
import signal
import time

import pytest

from tests.e2e.shell import ADJOURN, Shell, until

CLOSED = [
    ">&-",
    "2>&-",
    "<&-",
    ">&- 2>&-",
    ">&- 2>&- <&-",
    ">/dev/full",
    "2>/dev/full",
    ">/dev/full 2>&1",
]
NOISY = "sh -c 'echo out; echo err >&2; exit 90'"


@pytest.mark.parametrize("closed", CLOSED)
def test_a_pause_is_a_pause_whatever_became_of_the_streams(shell: Shell, closed: str) -> None:
    """A-R23, A-R34: exit code 10, the manifest is in its file, and what was printed is in the logs."""
    for options in ("", "--output json"):
        shell.line(f"{ADJOURN} run {options} -- {NOISY} {closed}", expect=10)
        task = shell.json("tasks")["tasks"][0]["task_id"]
        assert shell.state(task) == "waiting"
        assert (shell.store / "session" / task / "pause.json").exists()
        logs = shell.adjourn("logs", task)
        assert (logs.out, logs.err) == ("out\n", "err\n")
    other = 1 if closed.startswith(">/dev/full") else 0  # a closed stream is wanted, a full one not
    shell.line(f"{ADJOURN} approve {shell.inbox()[0]['id']} {closed}", expect=other)
    assert len(shell.inbox()) == 1
    shell.line(f"{ADJOURN} show nobody {closed}", expect=3)
    shell.line(f"{ADJOURN} inbox {closed}", expect=other)
    shell.line(f"{ADJOURN} logs {shell.inbox()[0]['task_id']} {closed}", expect=other)


@pytest.mark.one_machine("what is printed does not depend on the store")
def test_output_that_cannot_be_written_is_an_error(shell: Shell) -> None:
    """A-R21, A-R73: a script that keeps the output must not take a part of it for all of it."""
    said = "adjourn: not all of the output could be written: No space left on device\n"
    assert shell.line(f"{ADJOURN} run -- echo out >/dev/full").err.startswith(said)
    task = shell.json("tasks")["tasks"][0]["task_id"]
    verbs = [
        "--help",
        "tasks",
        "inbox --output json",
        f"show {task}",
        f"logs {task}",
        f"runs {task}",
    ]
    verbs += ["audit export --format csv", "audit export", "doctor", "config", "completion bash"]
    for verb in verbs:
        done = shell.line(f"{ADJOURN} {verb} >/dev/full", expect=1)
        assert done.err.startswith(said), verb
        (hint,) = [line for line in done.err.splitlines() if "see: " in line]
        shell.line(hint.partition("see: ")[2])


def test_a_reader_that_left_does_not_change_the_exit_code(shell: Shell) -> None:
    """`| true`, `| head -1`: no traceback, no complaint, exit code 10."""
    bash = "set -o pipefail; {} ; echo ${{PIPESTATUS[0]}} > code"
    for line in (
        f"{ADJOURN} run -- sh -c 'sleep 0.2; echo out; exit 90' | true",
        f"{ADJOURN} run --output json -- sh -c 'sleep 0.2; exit 90' | true",
        f"{ADJOURN} run -- sh -c 'yes | head -c 3000000; exit 90' | head -1",
    ):
        done = shell.run("bash", "-c", bash.format(line))
        assert shell.lines("code") == ["10"], line
        assert done.err == ""
    for words in ("--help", "run --help", "--version"):
        done = shell.run("bash", "-c", bash.format(f"{{ sleep 0.2; {ADJOURN} {words}; }} | true"))
        assert (shell.lines("code"), done.err) == (["0"], ""), words
    many = f"for n in $(seq 3); do {ADJOURN} logs {shell.json('tasks')['tasks'][0]['task_id']} | head -1; done"
    assert shell.run("bash", "-c", many).err == ""


def test_a_reader_that_does_not_read_does_not_hold_up_the_command(shell: Shell) -> None:
    """The run's own output goes to files; only the copy waits for whoever reads it."""
    process = shell.start("run", "--", "sh", "-c", "yes | head -c 3000000; touch finished; exit 90")
    until((shell.place / "finished").exists, what="the command is done")
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 10
    assert out.startswith(b"y\n" * 1_500_000)


def test_a_pipe_that_its_owner_made_non_blocking_loses_nothing(shell: Shell) -> None:
    """Node leaves its pipes so, and many a CI runner is Node."""
    task = shell.json("run", "--", "sh", "-c", "yes | head -c 1000000")["task_id"]
    for words, size in (
        (("logs", task), 1_000_000),
        (("logs", task, "--output", "json"), 1_500_000),
        (("run", "--", "yes"), None),
    ):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        process = shell.start(*words, stdout=writing)
        os.close(writing)
        time.sleep(0.7)
        with open(reading, "rb") as reader:
            said = reader.read(size or 1_000_000)
        assert len(said) == (size or 1_000_000), words
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM", "cancel", "pause"])
def test_a_reader_that_does_not_read_does_not_keep_a_run_from_being_stopped(
    shell: Shell, way: str
) -> None:
    """As with `adjourn run -- … | less`."""
    process = shell.start(
        "run", "--", "sh", "-c", "yes | head -c 3000000; touch finished; exec sleep 300"
    )
    until((shell.place / "finished").exists, what="the command has said it")
    task = shell.json("tasks")["tasks"][0]["task_id"]
    if way.startswith("SIG"):
        process.send_signal(signal.Signals[way])
    else:
        shell.adjourn(way, task)
    until(lambda: shell.state(task) != "running", what="it has stopped")
    assert shell.state(task) == ("canceled" if way == "cancel" else "paused")
    out, _ = process.communicate(timeout=30)
    assert out.startswith(b"y\n" * 1_500_000)

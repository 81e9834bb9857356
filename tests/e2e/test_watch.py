"""What a person sees of tasks while they work: the live table, and what runs print."""

import json
import re
import signal

import pytest

from tests.e2e.shell import Shell, until
from tests.e2e.terminal import CTRL_C, Terminal
from tests.e2e.test_notify import configure, to
from tests.receiver import receiving

GATED = '[ "$AUTO_APPROVAL" ] || exit 90; echo released'


@pytest.mark.serial
def test_the_table_shows_what_happens_elsewhere_and_leaves_the_terminal_as_it_was(
    shell: Shell,
) -> None:
    """A person leaves it open at 80 columns and 24 rows: nothing scrolls, and leaving stops nothing."""
    shell.adjourn("run", "--", "true")
    shell.adjourn("run", "--", "sh", "-c", "exit 3", expect=1)
    asked = shell.paused("sh", "-c", GATED)
    with Terminal(shell, "watch", columns=80, rows=24) as person:
        person.shows("1 waiting")
        assert re.search(
            r"^waiting +\w{8}  worked .*approval: sh -c", "\n".join(person.lines), re.MULTILINE
        )
        assert re.search(
            r"^failed .*sh -c 'exit 3': exit code 3", "\n".join(person.lines), re.MULTILINE
        )
        task = shell.detached("sleep", "60")
        person.shows("1 waiting, 1 running")
        assert any(re.match(rf"running +{task[:8]} .*sleep 60", row) for row in person.lines)
        shell.adjourn("approve", asked["asks"][0]["id"])
        person.shows("1 running, 1 queued")
        shell.adjourn("cancel", task)
        person.shows("canceled ")
        assert len(person.lines) <= 24
        person.type(b"q")
        assert person.ends() == 0
        assert person.raw.endswith(b"\x1b[?25h\x1b[?1049l\r\n")
    with Terminal(shell, "watch", columns=80, rows=10) as person:
        person.shows("… and 2 more")
        person.type(CTRL_C)
        assert person.ends() == 0


@pytest.mark.serial
def test_a_pipe_gets_a_line_for_each_change_and_json_a_document_for_each_event(
    shell: Shell,
) -> None:
    shell.adjourn("run", "--", "true")
    text, docs = shell.start("watch"), shell.start("watch", "--output", "json")
    until(lambda: len(list((shell.store / "wake").iterdir())) == 2, what="both listen")
    task = shell.json("run", "--", "echo", "--password", "hunter2")["task_id"]
    until(
        lambda: shell.json("tasks")["tasks"][0]["state"] == "succeeded", what="the task has ended"
    )
    for process in (text, docs):
        assert process.stdout is not None
    first = docs.stdout.readline() if docs.stdout else b""
    assert json.loads(first)["kind"] == "task_created"
    words = text.stdout.readline().split() if text.stdout else []
    assert words[1:3] == [b"running", task[:8].encode()]
    for process in (text, docs):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, b"")
        assert b"hunter2" not in out + b" ".join(words)


def test_logs_follow_a_task_over_its_pauses(shell: Shell) -> None:
    asked = shell.paused("sh", "-c", f"echo begun; {GATED}")
    task = asked["task_id"]
    follower = shell.start("logs", "-f", task)
    assert follower.stderr is not None
    assert f"task {task[:8]} waits for a person: adjourn inbox".encode() in (
        follower.stderr.readline()
    )
    shell.adjourn("approve", asked["asks"][0]["id"])
    shell.adjourn("resume", task)
    out, err = follower.communicate(timeout=20)
    assert (follower.returncode, out, err) == (0, b"begun\nbegun\nreleased\n", b"")
    assert shell.adjourn("logs", task).out == "begun\nreleased\n"
    assert shell.adjourn("logs", task, "--all").out == "begun\nbegun\nreleased\n"
    assert [run["stdout"] for run in shell.json("logs", task, "--all")["runs"]] == [
        "begun\n",
        "begun\nreleased\n",
    ]
    shell.adjourn("logs", task, "--all", "--run", "1", expect=2)


@pytest.mark.serial
def test_work_and_waiting_are_counted_apart(shell: Shell) -> None:
    asked = shell.paused("sh", "-c", GATED)
    until(lambda: "waited 1." in shell.adjourn("show", asked["task_id"]).out, what="it waited")
    shell.adjourn("approve", asked["asks"][0]["id"])
    with Terminal(shell, "resume", asked["task_id"]) as person:
        assert person.ends() == 0
        assert re.search(r"Completed: worked 0\.\ds, waited \d\.\ds", "\n".join(person.lines))
    assert "In all: worked 0." in shell.adjourn("runs", asked["task_id"]).out


def test_a_test_message_says_of_each_notifier_whether_it_arrived(shell: Shell) -> None:
    with receiving() as receiver:
        configure(shell, to(receiver), 'command = ["false"]\nname = "broken"')
        done = shell.adjourn("notify", "--test", expect=1)
        assert re.search(r"^broken +no .*it exited with 1", done.out, re.MULTILINE), done.out
        assert len(receiver.taken) == 1
        document = json.loads(receiver.taken[0][1])
        assert (document["kind"], document["event"]) == ("notify_test", "completion")
        assert not shell.store.exists()  # it needs no store and makes none
        tests = shell.json("notify", "--test", expect=1)["tests"]
        assert [each["delivered"] for each in tests] == [True, False]
    inside = shell.adjourn("run", "--", "adjourn", "notify", "--test", expect=1)
    assert "notify --test is refused inside a run" in inside.err

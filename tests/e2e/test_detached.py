"""Tasks that run on their own, watched and stopped from outside."""

import os
import signal
import subprocess
import time

import pytest

from tests.e2e.shell import Shell, until


def test_a_detached_run_returns_the_id_at_once(shell: Shell) -> None:
    """A-R55: and its supervisor is a copy in a session of its own, tied to nothing of the caller."""
    task = shell.adjourn(
        "run", "--detach", "--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done; exit 10"
    ).out.strip()
    (shell.place / "go").touch()
    shell.adjourn("wait", task, "--timeout", "20", expect=10)
    assert (shell.store / "session" / task / "pause.json").exists()


@pytest.mark.one_machine("it names another store of this machine")
def test_what_is_said_to_go_on_with_is_about_the_store_that_was_named(shell: Shell) -> None:
    there = ("--store", str(shell.place / "there"))
    assert str(shell.place / "there") in shell.adjourn("worker", "--status", *there).out
    hint = shell.json("run", "--detach", *there, "--", "sh", "-c", "sleep 0.3; exit 90")[
        "resume_hint"
    ]
    shell.line(hint, expect=10)
    shell.adjourn("run", *there, "--", "true")
    (older,) = [
        line
        for line in shell.adjourn("tasks", "--limit", "1", *there).out.splitlines()
        if line.startswith("older:")
    ]
    assert "waiting" in shell.line(older.removeprefix("older: ")).out


def test_a_detached_run_survives_the_death_of_whoever_started_it(shell: Shell) -> None:
    """Its shell may hang up, and its process group may be killed."""
    outer = subprocess.Popen(
        ["sh", "-c", "adjourn run --detach -- sh -c 'sleep 1; touch survived'; sleep 60"],
        cwd=shell.place,
        env=shell.environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert outer.stdout is not None
    task = outer.stdout.readline().decode().strip()
    os.killpg(outer.pid, signal.SIGHUP)
    os.killpg(outer.pid, signal.SIGKILL)
    outer.wait()
    outer.stdout.close()
    shell.adjourn("wait", task, "--timeout", "20")
    assert (shell.place / "survived").exists()


def test_wait_tells_how_several_stand(shell: Shell) -> None:
    """10 if any waits, else 1 if any failed or was canceled, else 0."""
    good = shell.json("run", "--detach", "--", "sh", "-c", "sleep 0.3")["task_id"]
    bad = shell.json("run", "--detach", "--", "false")["task_id"]
    asking = shell.json("run", "--detach", "--", "sh", "-c", "exit 90")["task_id"]
    shell.adjourn("wait", good, expect=0)
    shell.adjourn("wait", good, bad, expect=1)
    told = shell.json("wait", good, bad, asking, expect=10)
    assert [task["outcome"] for task in told["tasks"]] == ["completed", "failed", "paused"]
    shell.adjourn("cancel", asking)
    shell.adjourn("wait", good, asking, expect=1)


def test_wait_gives_up_when_it_was_told_to(shell: Shell) -> None:
    task = shell.detached("sleep", "300")
    began = time.monotonic()
    told = shell.json("wait", task, "--timeout", "0.5", expect=1)
    assert 0.4 < time.monotonic() - began < 3
    assert "still running" in told["error"]["message"]
    other = shell.detached("sleep", "300")
    began = time.monotonic()
    shell.adjourn("wait", task, other, "--timeout", "0.5", expect=1)
    assert time.monotonic() - began < 3
    shell.adjourn("cancel", task)
    shell.adjourn("cancel", other)


def test_wait_wakes_up_by_itself_and_soon(shell: Shell) -> None:
    """A wake-up is an event: it comes long before the slow look would."""
    shell.script("until [ -e go ]; do sleep 0.02; done; date +%s.%N > ended")
    task = shell.detached("./script.sh")
    waiter = shell.start("wait", task)
    time.sleep(0.7)
    (shell.place / "go").touch()
    assert waiter.wait(timeout=20) == 0
    late = time.time() - float(shell.lines("ended")[0])
    waiter.communicate()
    assert late < 1.5, f"{late:.2f} s after the end"


def test_logs_follow_a_run_to_its_end(shell: Shell) -> None:
    """stdout on stdout, stderr on stderr, while it works, and then it ends by itself."""
    task = shell.detached(
        "sh", "-c", "echo first; echo oops >&2; until [ -e go ]; do sleep 0.02; done; echo last"
    )
    follower = shell.start("logs", "-f", task)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"first\n"
    (shell.place / "go").touch()
    rest, err = follower.communicate(timeout=20)
    assert (rest, err, follower.returncode) == (b"last\n", b"oops\n", 0)
    assert shell.adjourn("logs", task).out == "first\nlast\n"


def test_logs_of_each_run_stay(shell: Shell) -> None:
    script = shell.script('echo "run $ADJOURN_RUN_ID"; [ "$AUTO_APPROVAL" ] || exit 90')
    task = shell.paused(script)["task_id"]
    shell.adjourn("resume", task, "--approve-all")
    assert shell.adjourn("logs", task).out == f"run {task}.2\n"
    assert shell.adjourn("logs", task, "--run", "1").out == f"run {task}.1\n"
    assert "no run 3" in shell.adjourn("logs", task, "--run", "3", expect=3).err
    assert shell.json("logs", task)["stdout"] == f"run {task}.2\n"


def test_a_pause_from_outside_is_one_interrupt_and_can_be_resumed(shell: Shell) -> None:
    """D-R8, D-R10, D-R13, D-R39, D-R59.

    Paused with the reason, resumable, and nothing of it alive.
    """
    task = shell.detached(shell.agent("interrupts.py"))
    until((shell.place / "ready").exists, what="it can be interrupted")
    said = shell.adjourn("pause", task).out
    assert f"Resume with: adjourn resume {task}" in said
    assert f"Restart with: adjourn restart {task}" in said
    assert shell.lines("interrupts") == ["SIGINT"]
    (run,) = shell.runs(task)
    assert (run["state"], run["pause_reason"], run["resumable"]) == (
        "paused",
        "user_interrupt",
        True,
    )
    assert run["paused_at"] >= run["created_at"]
    shown = shell.json("show", task)
    assert (shown["outcome"], shown["pause_reason"]["type"]) == ("paused", "user_interrupt")
    assert shell.processes() == {}


def test_what_does_not_stop_in_time_is_killed_and_still_paused(shell: Shell) -> None:
    """D-R11, D-R12, D-R13."""
    task = shell.detached(shell.agent("interrupts.py"), "stubborn", options=("--grace", "0.5"))
    until((shell.place / "ready").exists, what="it can be interrupted")
    began = time.monotonic()
    shell.adjourn("pause", task)
    assert 0.4 < time.monotonic() - began < 4
    assert shell.lines("interrupts") == ["SIGINT"]
    (run,) = shell.runs(task)
    assert (run["state"], run["signal"]) == ("paused", 9)


def test_a_paused_task_goes_on_only_when_somebody_says_so(shell: Shell) -> None:
    """D-R7, D-R14, D-R17, D-R44: resume starts its command again, once."""
    task = shell.detached(shell.script("echo start >> starts; [ -e go ] || sleep 300"))
    until(lambda: shell.lines("starts") == ["start"], what="it works")
    shell.adjourn("pause", task)
    (shell.place / "go").touch()
    shell.adjourn("inbox")
    assert shell.lines("starts") == ["start"]
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start", "start"]
    one, two = shell.runs(task)
    assert two["resumed_from_run_id"] == one["run_id"]


def test_cancel_ends_a_running_task_and_its_whole_tree(shell: Shell) -> None:
    task = shell.detached(
        "sh", "-c", "setsid sleep 300 & trap '' INT TERM; sleep 300", options=("--grace", "0.3")
    )
    shell.adjourn("cancel", task)
    assert shell.state(task) == "canceled"
    assert shell.processes() == {}
    shell.adjourn("resume", task, expect=4)
    shell.adjourn("cancel", task, expect=4)


def test_cancel_withdraws_what_was_asked(shell: Shell) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    ask = shell.inbox()[0]["id"]
    shell.adjourn("cancel", task)
    assert shell.inbox() == []
    assert "withdrawn" in shell.adjourn("approve", ask, expect=4).err
    assert shell.lines("effects") == []


def test_a_queued_task_can_be_canceled_or_paused(shell: Shell) -> None:
    """An approval that was given is worth nothing once the task is canceled."""
    for verb, state in (("cancel", "canceled"), ("pause", "paused")):
        task = shell.paused(shell.agent("approved.sh"))["task_id"]
        shell.adjourn("approve", shell.inbox()[0]["id"])
        shell.adjourn(verb, task)
        assert shell.state(task) == state
    assert shell.lines("effects") == []


def test_a_waiting_task_has_nothing_to_pause(shell: Shell) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    assert "no process of it runs" in shell.adjourn("pause", task, expect=4).err
    assert len(shell.inbox()) == 1


def test_resume_and_restart_can_be_detached_too(shell: Shell) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    assert shell.adjourn("resume", task, "--approve-all", "--detach").out == f"{task}\n"
    shell.adjourn("wait", task)
    assert shell.lines("effects") == ["done with approved"]
    shell.adjourn("restart", task, "--detach")
    shell.adjourn("wait", task, expect=10)
    assert len(shell.runs(task)) == 3

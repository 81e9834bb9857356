"""What a person at a terminal sees and does.

A real pty: the keys go through the line discipline.
"""

import os
import re
import signal
import time
from pathlib import Path

import pytest

import adjourn
from tests.e2e.shell import Shell, until
from tests.e2e.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.serial

PACKAGE = str(Path(adjourn.__file__).parent)
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def interruptible(shell: Shell, *words: str) -> tuple[str, ...]:
    """Return the words that run the agent that counts its interrupts."""
    return ("run", "--", shell.agent("interrupts.py"), *words)


def the_task(shell: Shell) -> str:
    """Return the only task's id."""
    (task,) = shell.json("tasks")["tasks"]
    name: str = task["task_id"]
    return name


def test_ctrl_c_pauses_with_exactly_one_interrupt(shell: Shell) -> None:
    """D-R8 to D-R11, D-R59.

    Exit code 10, what to do next, a paused and resumable record, nothing left alive.
    """
    with Terminal(shell, *interruptible(shell)) as person:
        person.sees("ready")
        person.type(CTRL_C)
        assert person.ends() == 10
        task = the_task(shell)
        said = "\n".join(person.lines)
        assert re.search(rf"Paused\..*Resume with: adjourn resume {task[:8]}\b", said, re.DOTALL)
        assert f"Restart with: adjourn restart {task[:8]}" in said
    assert shell.lines("interrupts") == ["SIGINT"]
    (run,) = shell.runs(task)
    assert (run["state"], run["pause_reason"], run["resumable"]) == (
        "paused",
        "user_interrupt",
        True,
    )
    assert shell.json("show", task)["pause_reason"]["type"] == "user_interrupt"
    assert shell.processes() == {}


def test_a_second_ctrl_c_kills_at_once(shell: Shell) -> None:
    """D-R12, D-R13: not after the grace.

    The child never sees a second interrupt; the record is there all the same.
    """
    with Terminal(shell, *interruptible(shell, "stubborn")) as person:
        person.sees("ready")
        person.sees("(Ctrl+C pauses)")
        person.type(CTRL_C)
        until(lambda: shell.lines("interrupts") == ["SIGINT"], what="the first interrupt arrived")
        person.sees("(Ctrl+C again kills)")
        began = time.monotonic()
        person.type(CTRL_C)
        assert person.ends() == 10
        assert time.monotonic() - began < 3, "the grace is five seconds"
    assert shell.lines("interrupts") == ["SIGINT"]
    (run,) = shell.runs(the_task(shell))
    assert (run["state"], run["signal"]) == ("paused", 9)


def test_a_burst_of_ctrl_c_leaves_a_paused_task(shell: Shell) -> None:
    """D-R12, D-R13."""
    with Terminal(shell, *interruptible(shell, "stubborn")) as person:
        person.sees("ready")
        person.type(CTRL_C * 10)
        assert person.ends() == 10
    assert shell.lines("interrupts") in ([], ["SIGINT"])
    assert shell.state(the_task(shell)) == "paused"


def test_two_requests_to_stop_that_arrive_at_once_kill_at_once(shell: Shell) -> None:
    """D-R12: the second is not lost because nobody had time to act on the first."""
    running = shell.start(*interruptible(shell, "stubborn"))
    until((shell.place / "ready").exists, what="it runs")
    began = time.monotonic()
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        running.send_signal(number)
    running.communicate(timeout=30)
    assert time.monotonic() - began < 4, "the grace is five seconds"
    assert running.returncode == 10
    assert shell.state(the_task(shell)) == "paused"


def test_ctrl_c_at_any_moment_of_the_start_loses_nothing(shell: Shell) -> None:
    """Interrupted while it starts.

    No traceback, and either there is no task, or it can be resumed or pruned.
    """
    for moment in (0.02, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3):
        with Terminal(shell, "run", "--", "sleep", "300") as person:
            person.listen(moment)
            person.type(CTRL_C)
            assert person.ends() in {1, 10, 130, -2}
            assert PACKAGE not in person.raw.decode(), (
                "Python's own start may complain, adjourn may not"
            )
            assert b"defect" not in person.raw
    states = (
        {task["state"] for task in shell.json("tasks")["tasks"]} if shell.store.exists() else set()
    )
    assert states <= {"paused", "queued"}
    assert shell.processes() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_is_the_first_ctrl_c(shell: Shell, number: signal.Signals) -> None:
    """A cancelled CI job, an evicted pod, a closed terminal.

    It pauses, and the child sees one interrupt.
    """
    process = shell.start(*interruptible(shell))
    until((shell.place / "ready").exists, what="it works")
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 10
    assert b"Resume with: adjourn resume" in out
    assert shell.lines("interrupts") == ["SIGINT"]


def test_sigquit_kills_at_once_and_leaves_nothing_behind(shell: Shell) -> None:
    """D-R12: as the second Ctrl+C. The run is paused, however much it would rather go on."""
    process = shell.start(*interruptible(shell), start_new_session=True)
    until((shell.place / "ready").exists, what="it works")
    os.killpg(process.pid, signal.SIGQUIT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 10
    assert b"Resume with: adjourn resume" in out
    assert shell.processes() == {}
    assert shell.state(the_task(shell)) == "paused"


def test_a_signal_to_the_whole_group_reaches_the_child_once(shell: Shell) -> None:
    """The child has a session of its own.

    What a shell or CI sends to the group, only adjourn gets.
    """
    process = shell.start(*interruptible(shell), start_new_session=True)
    until((shell.place / "ready").exists, what="it works")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 10
    assert shell.lines("interrupts") == ["SIGINT"]


def test_a_closed_terminal_pauses(shell: Shell) -> None:
    with Terminal(shell, *interruptible(shell)) as person:
        person.sees("Ctrl+C pauses")
        until((shell.place / "ready").exists, what="it works")
        assert person.hang_up() == 10
    assert shell.state(the_task(shell)) == "paused"
    assert shell.lines("interrupts") == ["SIGINT"]


def test_what_was_paused_by_ctrl_c_goes_on_with_what_was_printed(shell: Shell) -> None:
    """D-R14, D-R17."""
    script = shell.script("[ -e ready ] && exit 0; touch ready; exec sleep 300")
    with Terminal(shell, "run", "--", script) as person:
        until((shell.place / "ready").exists, what="it works")
        person.type(CTRL_C)
        person.ends()
        (advice,) = [line for line in person.lines if "Resume with:" in line]
    shell.line(advice.partition("Resume with: ")[2])
    assert shell.state(the_task(shell)) == "succeeded"


def test_the_line_with_the_time_is_there_on_a_terminal_only(shell: Shell) -> None:
    """And it is gone in the end: the screen shows the command's output and nothing else."""
    script = shell.script(
        "echo one; sleep 0.7; printf two; sleep 0.5; echo ' and a half'; sleep 0.5; echo three >&2"
    )
    with Terminal(shell, "run", "--", script) as person:
        assert person.ends() == 0
        assert b"Ctrl+C pauses" in person.raw
        assert person.lines[:3] == ["out │ one", "out │ two and a half", "err │ three"]
        assert "Completed: worked" in person.lines[3]
        assert len(person.lines) == 4
    piped = shell.adjourn("run", "--", script)
    assert (piped.out, piped.err) == ("one\ntwo and a half\n", "three\n")


def test_a_dumb_terminal_gets_no_escapes(shell: Shell) -> None:
    with Terminal(
        shell, "run", "--", "sh", "-c", "sleep 0.4; exit 90", env={"TERM": "dumb"}
    ) as person:
        assert person.ends() == 10
        assert b"\x1b" not in person.raw


def test_colour_is_for_terminals_and_never_with_no_color(shell: Shell) -> None:
    shell.adjourn("run", "--", shell.agent("approved.sh"), expect=10)
    for words in (("tasks",), ("inbox",)):
        assert not COLOUR.search(shell.adjourn(*words).raw)
        with Terminal(shell, *words) as person:
            person.ends()
            assert COLOUR.search(person.raw), words
        with Terminal(shell, *words, env={"NO_COLOR": "1"}) as person:
            person.ends()
            assert b"\x1b" not in person.raw, words


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_tables_fit_the_terminal(shell: Shell, columns: int) -> None:
    """No row wraps, whatever the arguments are: a table stays a table."""
    for word in ("short", "long " * 60, "漢字" * 40, "e\u0301" * 60):
        shell.adjourn("run", "--", "sh", "-c", "exit 90", word, expect=10)
    for words, rows in ((("tasks",), 5), (("inbox",), 5)):
        with Terminal(shell, *words, columns=columns) as person:
            person.ends()
            assert len(person.lines) == rows, person.lines


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_what_fits_into_a_table_is_not_cut(shell: Shell, columns: int) -> None:
    shell.adjourn("run", "--", "sh", "-c", "exit 90", expect=10)
    shell.adjourn("run", "--", shell.agent("deploy.sh"), expect=10)
    asked = [ask["prompt"] for ask in shell.inbox()]
    for words, shown in (
        (("tasks",), ["sh -c 'exit 90'"]),
        (("inbox",), ["sh -c 'exit 90'", asked[-1]]),
    ):
        with Terminal(shell, *words, columns=columns) as person:
            person.ends()
            for text in shown:
                assert any(line.endswith(f"  {text}") for line in person.lines), person.lines


def test_ctrl_c_while_waiting_or_following_only_ends_the_look(shell: Shell) -> None:
    """D-R5: the task goes on."""
    task = shell.detached("sleep", "300")
    for words in (("wait", task), ("logs", "-f", task)):
        with Terminal(shell, *words) as person:
            person.listen(0.7)
            person.type(CTRL_C)
            assert person.ends() == 130
            assert b"Traceback" not in person.raw
    assert shell.state(task) == "running"
    shell.adjourn("cancel", task)


def test_nothing_of_a_terminal_is_left_in_raw_mode_or_changed(shell: Shell) -> None:
    """A-R87: no verb reads the terminal."""
    with Terminal(shell, "run", "--", "sh", "-c", "cat; echo done reading") as person:
        person.type(b"typed ahead\n")
        assert person.ends() == 0
        assert "out │ done reading" in person.lines

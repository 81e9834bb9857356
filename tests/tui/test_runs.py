"""Real runs at a real terminal: started, paused by Ctrl+C, resumed, restarted and canceled."""

import pytest

from tests.e2e.shell import Shell, until
from tests.e2e.terminal import CTRL_C, Terminal
from tests.tui.keyboard import Keyboard

SLOW = "trap 'echo saved; exit 90' INT; echo began; while :; do sleep 0.1; done"
STUBBORN = "trap '' INT; echo began; while :; do sleep 0.1; done"


class Tui(Keyboard):
    """A TUI at a pty, and whoever types there."""

    def __init__(self, shell: Shell, person: Terminal) -> None:
        super().__init__(person)
        self.shell = shell

    def write(self, key: bytes, title: str, text: str, then: str) -> None:
        """Open a dialog, write a line, and end it."""
        self.press_until(key, title)
        self.press(text.encode())
        self.person.shows(text[-20:])
        self.press_until(b"\r", then)

    def task(self) -> str:
        """Return the newest task."""
        task: str = self.shell.json("tasks")["tasks"][0]["task_id"]
        return task


def at(shell: Shell, *words: str, columns: int = 120, rows: int = 40) -> Terminal:
    if not shell.store.exists():
        shell.adjourn("run", "--", "true")
    return Terminal(shell, "tui", *words, columns=columns, rows=rows)


@pytest.mark.serial
def test_ctrl_c_pauses_the_run_that_was_started_here_and_then_quits(shell: Shell) -> None:
    """D-R2, D-R3, D-R4, D-R5, D-R7, D-R29, D-R50, D-R56, D-R59, D-R66, A-R6, A-R77: one pause.

    The TUI stays, says how to quit, and quits without another change; `u` and `R` go on.
    """
    shell.script(SLOW)
    other = shell.json("run", "--pause-on-approval", "--", "echo", "other", expect=10)
    with at(shell) as person:
        tui = Tui(shell, person)
        person.shows("echo other")
        tui.write(
            b"n",
            "what `adjourn` would start",
            "./script.sh",
            "Started. Ctrl+C pauses it.  adjourn run -- ./script.sh",
        )
        task = tui.task()
        until(lambda: shell.state(task) == "running", what="it runs")
        until(lambda: "began" in shell.adjourn("logs", task, expect=None).out, what="it has begun")
        tui.press(CTRL_C)
        person.shows("Paused. Ctrl+C again to quit.")
        assert shell.state(task) == "paused"
        assert shell.state(other["task_id"]) == "waiting"  # nothing else was touched or started
        run = shell.runs(task)[-1]
        assert (run["state"], run["pause_reason"]) == ("paused", "user_interrupt")
        # It is in the inbox now; u goes on with it, and its output follows
        tui.press_until(b"G", "Paused. Resume with:")
        tui.press_until(b"u", "It goes on. Ctrl+C pauses it.")
        person.shows("run 2")
        person.shows("out │ began")
        tui.press_until(b"o", "out │ began")
        tui.press(CTRL_C)
        person.shows("Paused. Ctrl+C again to quit.")
        # R asks first, and begins again from nothing
        tui.press_until(b"\x1b", "Paused. Resume with:")
        tui.press_until(b"R", "Restart it from nothing?")
        tui.press(b"n")
        tui.press_until(b"R", "Restart it from nothing?")
        tui.press_until(b"y", "It goes on. Ctrl+C pauses it.")
        until(lambda: shell.state(task) == "running", what="it runs again")
        until(
            lambda: "began" in shell.adjourn("logs", task, expect=None).out,
            what="it has begun again",
        )
        tui.press(CTRL_C)
        person.shows("Paused. Ctrl+C again to quit.")
        events = shell.adjourn("audit", "export").out
        tui.press(CTRL_C)
        assert person.ends() == 0
    assert shell.adjourn("audit", "export").out == events
    assert len(shell.runs(task)) == 3
    shell.adjourn("cancel", task)


@pytest.mark.serial
def test_a_second_ctrl_c_kills_what_does_not_leave(shell: Shell) -> None:
    """D-R12: the process ignores the interrupt; nobody has to wait for the end of its grace."""
    shell.script(STUBBORN)
    with at(shell, columns=80, rows=24) as person:
        tui = Tui(shell, person)
        person.shows("Nothing waits for you.")
        tui.write(b"n", "what `adjourn` would start", "./script.sh", "Started.")
        task = tui.task()
        until(lambda: "began" in shell.adjourn("logs", task, expect=None).out, what="it has begun")
        tui.press(CTRL_C)
        person.shows("Pausing. Ctrl+C again kills it.")
        tui.press(CTRL_C)
        person.shows("Paused. Ctrl+C again to quit.")
        tui.press_until(b"\x1b", "Restart with")
        # x asks first, and ends the task
        tui.press_until(b"x", "Cancel it?")
        tui.press_until(b"y", "Canceled.")
        tui.press(CTRL_C)
        assert person.ends() == 0
    assert shell.state(task) == "canceled"


@pytest.mark.serial
def test_a_plan_runs_here_and_ctrl_c_starts_no_other_task_of_it(shell: Shell) -> None:
    """D-R2, D-R5, D-R6: the running task pauses, and what is ready stays where it is."""
    shell.script(SLOW)
    (shell.place / "plan.toml").write_text(
        '[[task]]\nid = "one"\ncommand = ["./script.sh"]\n\n'
        '[[task]]\nid = "two"\ncommand = ["echo", "two"]\n'
    )
    with at(shell) as person:
        tui = Tui(shell, person)
        person.shows("Nothing waits for you.")
        tui.press_until(b"n", "what `adjourn` would start")
        tui.press(b"\x15")  # Ctrl+U
        tui.press(b"execute plan.toml")
        person.shows("execute plan.toml")
        tui.press_until(b"\r", "Started. Ctrl+C pauses it.")
        until(lambda: len(shell.json("tasks")["tasks"]) > 1, what="the plan has begun")
        task = tui.task()
        until(lambda: "began" in shell.adjourn("logs", task, expect=None).out, what="it has begun")
        tui.press(CTRL_C)
        person.shows("Paused. Ctrl+C again to quit.")
        assert shell.state(task) == "paused"
        tui.press_until(b"j", "Paused. Resume with:")
        tui.press_until(b"p", "plan.toml")
        person.shows("Paused: none of its tasks starts until you go on.")
        tui.press(b"q")
        assert person.ends() == 0
    assert len(shell.json("tasks")["tasks"]) == 2  # the other task of the plan was not started
    shell.adjourn("cancel", task)


@pytest.mark.serial
def test_a_terminal_that_closes_leaves_the_run_to_its_supervisor(shell: Shell) -> None:
    shell.script(SLOW)
    with at(shell) as person:
        tui = Tui(shell, person)
        person.shows("Nothing waits for you.")
        tui.write(b"n", "what `adjourn` would start", "./script.sh", "Started.")
        task = tui.task()
        until(lambda: "began" in shell.adjourn("logs", task, expect=None).out, what="it has begun")
        person.hang_up()
    assert shell.state(task) == "running"
    shell.adjourn("cancel", task)


def test_inside_a_run_one_can_only_look_and_without_a_terminal_there_is_plain(shell: Shell) -> None:
    (ask,) = (shell.json("run", "--pause-on-approval", "--", "echo", "x", expect=10)["asks"][0],)
    done = shell.adjourn("tui", expect=2)
    assert "adjourn tui --plain" in done.err
    with Terminal(
        shell, "tui", "--plain", columns=80, rows=24, env={"ADJOURN_PROMPT": ""}
    ) as person:
        person.shows("a approve")
        person.listen(0.4)
        person.type(b"a")
        assert person.ends() == 0
    assert shell.inbox() == []
    assert ask["id"]

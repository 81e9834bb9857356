"""Drivers of the surfaces: the command line, MCP, and the TUI at a real terminal."""

from contextlib import ExitStack
from typing import Self

from tests.e2e.shell import Shell, until
from tests.e2e.terminal import Terminal
from tests.mcp_server.host import Host
from tests.tui.keyboard import Keyboard

_LEFT = {"succeeded", "failed", "canceled", "waiting", "paused"}


class Surface:
    """What all drivers have."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def ask_of(self, task: str) -> str:
        """Return the one open ask of a task."""
        (ask,) = [ask for ask in self.shell.inbox() if ask["task_id"] == task]
        return str(ask["id"])

    def wait(self, task: str, *states: str) -> None:
        """Wait until a task is in one of these states."""
        until(lambda: self.shell.state(task) in states, what=f"{task} is {states}", seconds=40)


class CommandLine(Surface):
    """A person at a shell."""

    def start(self, command: tuple[str, ...], *, is_gated: bool) -> str:
        gate = ("--pause-on-approval",) if is_gated else ()
        return str(self.shell.json("run", *gate, "--", *command, expect=10)["task_id"])

    def approve(self, task: str) -> None:
        self.shell.adjourn("approve", self.ask_of(task), "--resume", expect=None)

    def reject(self, task: str) -> None:
        self.shell.adjourn("reject", self.ask_of(task), "--resume", expect=None)

    def answer(self, task: str, text: str) -> None:
        self.shell.adjourn("answer", self.ask_of(task), text, "--resume", expect=None)

    def restart(self, task: str) -> None:
        self.shell.adjourn("restart", task, expect=10)

    def cancel(self, task: str) -> None:
        self.shell.adjourn("cancel", task)


class Mcp(Surface):
    """A parent agent."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        self._host = self.stack.enter_context(Host(shell))
        self._host.initialize()

    def start(self, command: tuple[str, ...], *, is_gated: bool) -> str:
        task = self._host.call(
            "run_command_task", command=list(command), pause_on_approval=is_gated
        )["task_id"]
        self._wait(task)
        return str(task)

    def approve(self, task: str) -> None:
        self._decide(task, is_approved=True)

    def reject(self, task: str) -> None:
        self._decide(task, is_approved=False)

    def answer(self, task: str, text: str) -> None:
        self._host.call("answer", ask_id=self.ask_of(task), text=text)
        self._wait(task)

    def restart(self, task: str) -> None:
        self._host.call("restart_task", task_id=task)
        self.wait(task, "waiting")

    def cancel(self, task: str) -> None:
        self._host.call("cancel_task", task_id=task)

    def _decide(self, task: str, *, is_approved: bool) -> None:
        self._host.call("get_task_details", task_id=task)  # what was not shown is not approved
        decision = {"tool_call_id": self.ask_of(task), "approved": is_approved}
        self._host.call("resume_task", task_id=task, tool_decisions=[decision])
        self.wait(task, *_LEFT - {"waiting"})

    def _wait(self, task: str) -> None:
        self._host.call("wait_for_tasks", task_ids=[task], timeout=40)


class Tui(Surface):
    """A person at a terminal that a TUI fills."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        if not shell.store.exists():
            shell.adjourn("run", "--", "true")
        self._person = self.stack.enter_context(Terminal(shell, "tui", columns=120, rows=40))
        self._person.shows("Nothing waits for you.")
        self._press, self._until = Keyboard(self._person).press, Keyboard(self._person).press_until

    def start(self, command: tuple[str, ...], *, is_gated: bool) -> str:
        # A config says whether commands are gated: there is no flag in the dialog
        gate = ("--pause-on-approval",) if is_gated else ()
        task = str(self.shell.json("run", *gate, "--", *command, expect=10)["task_id"])
        # To the first row, if the output of the last is still shown
        self._until(b"g", "Approve with:" if is_gated else "Answer with:")
        return task

    def approve(self, task: str) -> None:
        self._until(b"a", "Approved.")
        self._go_on(task)

    def reject(self, task: str) -> None:
        self._until(b"r", "Reject it. Why?")
        self._until(b"\r", "Rejected.")
        self._go_on(task)

    def answer(self, task: str, text: str) -> None:
        self._until(b"t", "Enter takes it")
        self._press(text.encode())
        self._person.shows(f"  {text} ")
        self._until(b"\r", "Answered.")
        self._go_on(task)

    def restart(self, task: str) -> None:
        self._until(b":", "Go to:")
        self._press(task.encode())
        self._person.shows(task)
        self._until(b"\r", "Canceled.  (task")
        self._until(b"R", "Restart it from nothing?")
        self._until(b"y", "is waiting.")
        self._until(b"g", "Approve with:")

    def cancel(self, task: str) -> None:
        self._until(b"x", "Cancel it?")
        self._until(b"y", "Canceled.")
        self.wait(task, "canceled")

    def _go_on(self, task: str) -> None:
        """Press u on the task that is queued now, unless the decision has ended it."""
        if self.shell.state(task) == "queued":
            self._person.shows("Start with:")
            self._until(b"u", "is succeeded.")

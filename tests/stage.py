"""A person's shell in which an agent works.

A workspace, an empty home, and short ways to what tests look at.
"""

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from adjourn.core.call import COMMAND
from tests.e2e.shell import Document, Done, Shell


class Stage:
    """A workspace, a home, and the adjourn that runs an agent in them."""

    gated: tuple[str, ...] = ("run", "--pause-on-approval")
    # What is in the command lines of our driver, and of the program that it drives
    driver, program = "", ""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.work = place / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.shell = Shell(self.work)
        self.shell.environment["HOME"] = str(self.home)
        if self.shell.database is None:
            # Kept and copied with the home
            self.shell.environment["XDG_STATE_HOME"] = str(self.home / ".local" / "state")

    def run(
        self, prompt: str = "do it", *, expect: int | None = 10, options: Sequence[str] = ()
    ) -> Done:
        """Have the agent work on a prompt, gated."""
        return self.shell.adjourn(*self.gated, *options, prompt, expect=expect)

    @property
    def task(self) -> str:
        """The newest task."""
        task: str = self.shell.json("tasks")["tasks"][0]["task_id"]
        return task

    @property
    def newest(self) -> str | None:
        """The newest task, if there is one."""
        return (
            self.task if self.shell.store.exists() and self.shell.json("tasks")["tasks"] else None
        )

    def asks(self) -> list[Document]:
        """Return the open asks."""
        return self.shell.inbox()

    def shown(self) -> str:
        """Return all that a person can see of the newest task."""
        return self.shell.adjourn("show", self.task, "--full").out

    def approve_all(self) -> None:
        """Approve all that waits."""
        self.shell.adjourn("approve", *[ask["id"] for ask in self.asks()])

    def resume(self, *words: str, expect: int | None = 0) -> Done:
        """Go on with the newest task."""
        return self.shell.adjourn("resume", self.task, *words, expect=expect)

    def kill(self, victim: str) -> None:
        """Kill the driver or the program, and nothing else."""
        mark = {"driver": self.driver, "program": self.program}[victim]
        for pid, words in self.shell.processes().items():
            if mark in words:
                os.kill(pid, signal.SIGKILL)

    def is_saved(self) -> bool:
        """Say whether the driver of the newest run has seen that its session is on disk."""
        task, store = self.newest, self.shell.open_store()
        with contextlib.closing(store), store.read() as view:
            runs = view.runs(task) if task else []
        return bool(runs) and runs[-1].resumable

    def lines(self, name: str = "made.txt") -> list[str]:
        """Return what tools wrote."""
        return self.shell.lines(name)

    def calls(self) -> dict[str, str]:
        """Return the agent's calls of the newest task by name, with how each stands."""
        task, store = self.task, self.shell.open_store()
        with contextlib.closing(store), store.read() as view:
            return {
                call.tool_call_id: call.state.value
                for call in view.calls(task)
                if call.tool != COMMAND
            }

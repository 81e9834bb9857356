"""Workers whose machine fails them: what starts them, starves them and kills parts of them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.shell import ADJOURN, Done, Shell, parent_of, until
from tests.needs import missing, needs

UID = 2_000_000 + os.getpid()  # its processes are those of this test alone

START_TASKS = Path(__file__).parent / "start_tasks.py"

Worker = subprocess.Popen[bytes]


class UserShell(Shell):
    """A shell of an ordinary user, whom limits on processes hold; they do not hold root."""

    def run(
        self,
        *words: str | bytes,
        expect: int | None = 0,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        stdin: bytes | None = None,
    ) -> Done:
        """Run a program as the user."""
        return super().run(*as_user(), *words, expect=expect, env=env, cwd=cwd, stdin=stdin)

    def start(
        self, *words: str, before: tuple[str, ...] = (), **settings: Any
    ) -> "subprocess.Popen[bytes]":
        """Start adjourn as the user, behind other words, such as those of prlimit."""
        started: Any = subprocess.Popen(
            [*as_user(), *before, str(ADJOURN), *words],
            **{"cwd": self.place, "env": self.environment, "stdin": subprocess.DEVNULL, **settings},
        )
        process: subprocess.Popen[bytes] = started
        return process

    def be_alone(self) -> None:
        """Wait until no process of the user is left.

        An init may be slow to reap what was left to it, and that counts.
        """
        until(lambda: not _processes_of(UID), what="no process of the user is left", seconds=30)


def _processes_of(uid: int) -> list[str]:
    found: list[str] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"Uid:\t{uid}\t" in Path(f"/proc/{entry}/status").read_text():
                found.append(entry)
    return found


def as_user() -> tuple[str, ...]:
    """Return what becomes the user, who may read everything.

    Python may lie in a directory of root's.
    """
    read_all = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return (needs("setpriv"), f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *read_all)


@contextmanager
def user_shell() -> Iterator[UserShell]:
    """Have a shell of an ordinary user, in a directory that this user can reach."""
    if os.geteuid() != 0:
        missing("the right to become another user")
    place = Path(tempfile.mkdtemp(prefix="adjourn-user-", dir="/tmp"))
    os.chown(place, UID, UID)
    shell = UserShell(place)
    shell.environment |= {"HOME": str(place), "XDG_STATE_HOME": str(place / ".state")}
    try:
        yield shell
        assert shell.end() == {}
    finally:
        shell.end()
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def a_worker(shell: Shell, *words: str, name: str = "worker", **settings: Any) -> Iterator[Worker]:
    """Have a worker that writes its log to a file; it is gone afterwards."""
    with (shell.place / f"{name}.log").open("ab") as log:
        process = shell.start(
            "worker", *words, **{"stdout": subprocess.DEVNULL, "stderr": log, **settings}
        )
    try:
        is_there = f"pid={process.pid}"
        until(
            lambda: is_there in log_of(shell, name) or process.poll() is not None,
            what="it is there",
        )
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.wait(timeout=60)


def log_of(shell: Shell, name: str = "worker") -> str:
    """Return what a worker has logged."""
    path = shell.place / f"{name}.log"
    return path.read_text() if path.exists() else ""


def fork_servers_of(worker: int) -> list[int]:
    """Return the living fork servers of a worker."""
    found: list[int] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            is_one = Path(f"/proc/{entry}/comm").read_text() == "adjourn-forks\n"
            if is_one and parent_of(int(entry)) == worker:
                found.append(int(entry))
    return found


def limit(shell: Shell, pid: int, most: str) -> None:
    """Limit what a process may have, as prlimit spells it.

    As its own user, for root may lack the right.
    """
    shell.run("prlimit", most, "--pid", str(pid), expect=None)


def approved(shell: Shell, count: int, *command: str) -> list[str]:
    """Return queued tasks that a person has approved."""
    shell.adjourn("run", "--", "true")  # makes the store
    tasks = shell.run(
        sys.executable, str(START_TASKS), str(shell.store), str(count), *command
    ).out.split()
    asks = [
        ask["id"]
        for ask in shell.json("inbox", "--limit", "1000")["asks"]
        if ask["task_id"] in tasks
    ]
    assert len(asks) == len(tasks) == count
    shell.adjourn("approve", *asks)
    return tasks


def states(shell: Shell, tasks: list[str]) -> list[str]:
    """Return the states of tasks, without starting a process for each."""
    names = ", ".join(f"'{task}'" for task in tasks)
    return [
        row[0]
        for row in shell.sql(f"SELECT state FROM task WHERE id IN ({names}) ORDER BY id")  # noqa: S608 -- ids of our own
    ]

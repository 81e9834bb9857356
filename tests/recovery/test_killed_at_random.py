"""Parts of one worker are killed and starved at random beside a healthy one.

No approval is lost, nothing runs twice.
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.shell import parent_of, until
from tests.recovery.workers import (
    UserShell,
    a_worker,
    approved,
    fork_servers_of,
    limit,
    states,
    user_shell,
)

SHARES = {"ci": (30, 15.0), "full": (200, 240.0)}  # tasks, seconds at most


class Trouble:
    """What happens to the sick worker.

    It is started again when it dies, as an init system would do.
    """

    def __init__(self, shell: UserShell, chance: random.Random) -> None:
        self._shell = shell
        self._chance = chance
        self._worker: subprocess.Popen[bytes] | None = None
        self.counts: Counter[str] = Counter()

    def make(self) -> None:
        """Do one bad thing to the worker, its fork server or a shim that still stands at its gate."""
        worker = self._worker
        if worker is None or worker.poll() is not None:
            with (self._shell.place / "sick.log").open("ab") as log:
                words = ("worker", "--max-active", "3")
                worker = self._shell.start(*words, stdout=subprocess.DEVNULL, stderr=log)
            self._worker = worker
            until(lambda: bool(fork_servers_of(worker.pid)), what="its fork server is there")
            time.sleep(0.3)
        servers = fork_servers_of(worker.pid)
        what = self._chance.choices(
            ("server", "shim", "worker", "starve", "files"), weights=(45, 20, 5, 20, 10)
        )[0]
        if what in {"server", "shim", "starve"} and not servers:
            return  # it has not been replaced yet
        if what == "server":
            self._kill(servers[0])
        elif what == "shim":
            for shim in _children_of(servers[0])[:1]:
                if not _has_started(self._shell, shim):
                    self._kill(shim)
        elif what == "worker":
            self._kill(worker.pid)
        elif what == "starve":
            limit(self._shell, servers[0], "--nproc=1:")
            time.sleep(self._chance.uniform(0.2, 1.5))
            limit(self._shell, servers[0], "--nproc=10000:")
        elif what == "files":
            limit(self._shell, worker.pid, "--nofile=4:")
            time.sleep(self._chance.uniform(0.2, 1.0))
            limit(self._shell, worker.pid, "--nofile=1024:")
        self.counts[what] += 1

    def end(self) -> None:
        """Leave nothing of it."""
        if self._worker:
            self._worker.terminate()
            self._worker.wait(timeout=60)

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _has_started(shell: UserShell, shim: int) -> bool:
    """Return whether a shim may have let its command start.

    To kill that one makes it uncertain, which is another promise.
    """
    for child in _children_of(shim):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{child}/cwd") == str(shell.place)
    return parent_of(shim) == 1


@pytest.mark.serial
@pytest.mark.timeout(600)
@pytest.mark.one_machine("it counts the processes of one user")
def test_no_approved_task_fails_for_the_machines_reason_and_none_runs_twice(sweep: str) -> None:
    count, seconds = SHARES[sweep]
    with user_shell() as shell:
        command = 'echo "$ADJOURN_TASK_ID" >> effects; sleep 0.5'
        tasks = approved(shell, count, "sh", "-c", command)
        trouble = Trouble(shell, random.Random(20261117))
        with a_worker(shell, "--max-active", "1", name="healthy"):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and set(states(shell, tasks)) & {"queued", "running"}:
                trouble.make()
                time.sleep(0.2)
            until(
                lambda: not set(states(shell, tasks)) & {"queued", "running"},
                what="every task has ended or waits for a person",
                seconds=240,
            )
            trouble.end()
        ended = Counter(states(shell, tasks))
        uncertain = [ask["task_id"] for ask in shell.json("inbox", "--limit", "1000")["asks"]]
        ran = Counter(shell.lines("effects"))
        print(
            f"\n{count} approved tasks, {dict(trouble.counts)}: {dict(ended)}, {len(uncertain)} uncertain"
        )
        assert ended["failed"] == 0
        assert [task for task, times in ran.items() if times > 1] == []
        assert ended["succeeded"] + len(uncertain) == count
        assert all(ran[task] == 1 for task in tasks if task not in uncertain)
        assert ended["waiting"] == len(uncertain)

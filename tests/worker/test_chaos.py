"""Workers are killed and stopped at random; every effect happens once, or a person is asked."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from threading import Timer

import pytest

from adjourn.core.trail.events import first_broken
from adjourn.process.shim import adopt, read_record
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import Document, Shell, until

SHARES = {"ci": (30, 15.0), "full": (200, 120.0)}  # tasks, seconds
WORKERS = 4


class Crew:
    """Workers that are started again when they die, as an init system would."""

    def __init__(self, shell: Shell, chance: random.Random) -> None:
        self._shell = shell
        self._chance = chance
        self._workers: list[subprocess.Popen[bytes]] = []
        self.kills = self.stops = self.shims = 0

    def fill(self) -> None:
        """Start what is missing."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        while len(self._workers) < WORKERS:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self._workers.append(self._shell.start("worker", "--max-active", "3", **quiet))

    def disturb(self) -> None:
        """Kill one of them, or stop it for a while.

        Now and then kill a shim, and nobody can tell what became of its run.
        """
        victim = self._chance.choice(self._workers)
        match self._chance.choices(("kill", "stop", "shim"), weights=(55, 35, 10))[0]:
            case "kill":
                victim.kill()
                self.kills += 1
            case "stop":
                victim.send_signal(signal.SIGSTOP)
                # By itself: a worker that is stopped while it writes keeps all others waiting, this
                # test included.
                Timer(self._chance.uniform(0.5, 3), victim.send_signal, [signal.SIGCONT]).start()
                self.stops += 1
            case _:
                self.shims += self._kill_a_shim()

    def _kill_a_shim(self) -> bool:
        for place in (self._shell.store / "runs").iterdir():
            record = read_record(str(place))
            shim = adopt(str(place), record.identity) if record else None
            if shim:
                signal.pidfd_send_signal(shim.fileno(), signal.SIGKILL)
                shim.close()
                return True
        return False

    def calm(self) -> None:
        """Let all go on, and none be missing."""
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
        self.fill()

    def dismiss(self) -> None:
        """Send all home."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait(timeout=60)


@pytest.fixture
def crew(shell: Shell) -> Iterator[Crew]:
    """Return a crew that is gone when the test ends."""
    crew = Crew(shell, random.Random(20261115))
    yield crew
    crew.calm()
    crew.dismiss()


@pytest.mark.serial
@pytest.mark.timeout(900)
def test_whatever_happens_to_workers_every_effect_happens_once_or_a_person_is_asked(
    shell: Shell, crew: Crew, sweep: str
) -> None:
    """B-R30, C-R13, C-R16: no child runs under two supervisors, and a stopped worker's child is never started again."""
    count, seconds = SHARES[sweep]
    script = shell.script(
        '[ "$AUTO_APPROVAL" ] || exit 90\necho "+ $ADJOURN_TASK_ID" >> effects; sleep 0.5; echo "- $ADJOURN_TASK_ID" >> effects'
    )
    crew.fill()
    tasks = [shell.json("run", "--detach", "--", script)["task_id"] for _ in range(count)]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        approve_all(shell)
        crew.disturb()
        crew.fill()
        time.sleep(0.2)
    crew.calm()
    until(
        lambda: not under_way(shell), what="every task has ended or waits for a person", seconds=120
    )

    states = {task: shell.state(task) for task in tasks}
    uncertain = {ask["task_id"] for ask in asks(shell) if ask["kind"] == "uncertain"}
    began, ended = (
        Counter(line[2:] for line in shell.lines("effects") if line.startswith(sign))
        for sign in "+-"
    )
    print(
        f"\n{crew.kills} workers killed, {crew.stops} stopped, {crew.shims} shims killed", end="; "
    )
    print(f"{count} tasks: {dict(Counter(states.values()))}, {len(uncertain)} uncertain")
    assert [task for task, times in began.items() if times > 1] == []
    assert {task for task in tasks if states[task] != "succeeded"} == uncertain
    assert all(began[task] == ended[task] == 1 for task in tasks if task not in uncertain)
    assert [run for run, times in opened_gates(shell, tasks).items() if times > 1] == []


def opened_gates(shell: Shell, tasks: list[str]) -> Counter[str]:
    """Count, by the audit trail, how often each run was let through its gate."""
    store = open_controller(str(shell.store)).store
    with store.read() as view:
        assert first_broken(view.trail()) is None
        happened = [event for task in tasks for event in view.events(task)]
    store.close()
    return Counter(
        f"{event.task_id}.{event.facts['run']}"
        for event in happened
        if event.kind == "call_executing"
    )


def approve_all(shell: Shell) -> None:
    """Approve what waits, whoever else may do so at the same moment."""
    pending = [ask["id"] for ask in asks(shell) if ask["kind"] == "approval"]
    if pending:
        shell.adjourn("approve", *pending[:5], expect=None)


def under_way(shell: Shell) -> bool:
    approve_all(shell)
    states = {task["state"] for task in shell.json("tasks", "--limit", "1000")["tasks"]}
    return bool(states & {"queued", "running"}) or any(
        ask["kind"] == "approval" for ask in asks(shell)
    )


def asks(shell: Shell) -> list[Document]:
    found: list[Document] = shell.json("inbox", "--limit", "1000")["asks"]
    return found


def test_two_workers_that_start_at_once_after_a_crash_adopt_a_run_once(shell: Shell) -> None:
    """Looped: one try proves nothing."""
    script = shell.script("echo on >> started; sleep 1.5; echo end >> started")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for round_ in range(3):
        first = shell.start("worker", **quiet)
        until(lambda: bool(shell.json("worker", "--status")["workers"]), what="the worker is there")
        task = shell.json("run", "--detach", "--", script)["task_id"]
        until(lambda: len(shell.lines("started")) == 2 * round_ + 1, what="it runs")  # noqa: B023 -- called at once
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        pair = [shell.start("worker", **quiet) for _ in range(2)]
        shell.adjourn("wait", task)
        for worker in pair:
            worker.terminate()
            worker.wait(timeout=30)
    assert shell.lines("started") == ["on", "end"] * 3

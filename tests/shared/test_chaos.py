"""Workers of several machines are killed, stopped and cut off at random: every effect once, or uncertain and visible."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shell import until
from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine
from tests.shared.test_faults import end_all

SHARES = {"ci": (6, 8.0), "full": (200, 600.0)}  # tasks, and seconds of trouble
EFFECT = 'echo "$ADJOURN_CALL_ID $ADJOURN_RUN_ID" >> effects; sleep 1.5; echo "$ADJOURN_RUN_ID" >> ends'


class Trouble:
    """What may happen to workers and to their connections."""

    def __init__(self, machines: list[Machine], postgres: Server, database: str, *, seed: int) -> None:
        self._machines = machines
        self._postgres = postgres
        self._database = database
        self._chance = random.Random(seed)
        self._stopped: list[int] = []
        self.kinds: Counter[str] = Counter()

    def make(self) -> None:
        act: Callable[[], None] = self._chance.choice([self.kill, self.stop, self.go_on, self.cut_off])
        self.kinds[act.__name__] += 1
        act()

    def kill(self) -> None:
        machine = self._chance.choice(self._machines)
        machine.workers[-1].kill()
        machine.workers[-1].wait(30)
        machine.begin_worker()

    def stop(self) -> None:
        process = self._chance.choice(self._machines).workers[-1]
        process.send_signal(signal.SIGSTOP)
        self._stopped.append(process.pid)

    def go_on(self) -> None:
        for pid in self._stopped:
            with_pid(pid)
        self._stopped.clear()

    def cut_off(self) -> None:
        end_all(self._postgres, self._database)


def with_pid(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return


@pytest.mark.serial
@pytest.mark.timeout(1200)
def test_whatever_happens_to_workers_every_effect_is_there_once_or_uncertain(
    machine: Callable[[str], Machine], postgres: Server, database: str, sweep: str
) -> None:
    many, seconds = SHARES[sweep]
    machines = [machine(f"machine-{number}") for number in range(4)]
    tasks = [machines[0].waiting(f'[ "$AUTO_APPROVAL" ] || exit 90; {EFFECT}') for _ in range(many)]
    for each in machines:
        each.begin_worker("--max-active", "2")
    for ask in machines[0].inbox():
        machines[0].adjourn("approve", ask["id"])
    trouble = Trouble(machines, postgres, database, seed=many)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        trouble.make()
        time.sleep(0.5)
    trouble.go_on()
    watcher = machines[0]
    until(
        lambda: all(watcher.state(task) not in {"queued", "running"} for task in tasks),
        what="all came to rest",
        seconds=20 * LEASE,
    )
    states = Counter(_checked(watcher, task) for task in tasks)
    print(f"{dict(trouble.kinds)}: {dict(states)}")
    assert states["succeeded"] + states["waiting"] == many


def _under_way(watcher: Machine, tasks: list[str]) -> list[str]:
    found = watcher.json("tasks")["tasks"]
    return [task["task_id"] for task in found if task["task_id"] in tasks and task["state"] in {"queued", "running"}]


def _checked(watcher: Machine, task: str) -> str:
    """Return how a task came out; what ran and how often is written down outside of the store."""
    state = watcher.state(task)
    effects = [line for line in _lines(watcher.work / "effects") if line.startswith(f"{task}.")]
    if state == "succeeded":
        assert len(effects) == 1, effects
    else:
        asks = [ask for ask in watcher.inbox() if ask["task_id"] == task]
        assert [ask["kind"] for ask in asks] == ["uncertain"], asks
        assert len(effects) <= 1, effects
    return state


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []

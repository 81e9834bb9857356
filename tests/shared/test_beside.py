"""Calls that run beside an agent, where machines share the work.

They have the lease of their run, and die with it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adjourn.core.ask import Principal
from adjourn.core.task import OnRejection, Spec
from adjourn.wiring import find_root
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import AGENTS, until
from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine
from tests.shared.test_faults import end_all
from tests.shared.test_machines import is_alive

Make = Callable[[str], Machine]
pytestmark = [pytest.mark.serial, pytest.mark.timeout(200)]
STAYS = "echo $$ >> pids; echo + >> effects; sleep {}; echo - >> effects"


@pytest.fixture
def queue(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Machine, str], str]:
    """Return what leaves an agent to the workers; its one call is a shell command."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "desk"))

    def put(machine: Machine, command: str) -> str:
        controller = open_controller(find_root(database))
        driver = (sys.executable, str(AGENTS / "driver.py"), command)
        spec = Spec(
            runner="agent",
            argv=driver,
            workspace=str(machine.work),
            prompt="go",
            on_rejection=OnRejection.TELL,
        )
        task = controller.tasks.start(spec, by=Principal(name=f"uid:{os.getuid()}"))
        controller.store.close()
        return task.id

    return put


def lines(machine: Machine, name: str) -> list[str]:
    path = machine.work / name
    return path.read_text().split() if path.exists() else []


Queue = Callable[[Machine, str], str]


def test_a_call_beside_its_agent_lasts_for_many_leases(machine: Make, queue: Queue) -> None:
    here = machine("here")
    here.worker()
    task = queue(here, STAYS.format(3 * LEASE))
    until(lambda: here.state(task) == "succeeded", what="it was done", seconds=10 * LEASE)
    assert lines(here, "effects") == ["+", "-"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_call_beside_its_agent_dies_with_the_lease_and_is_uncertain(
    machine: Make, queue: Queue, how: signal.Signals
) -> None:
    here, other = machine("here"), machine("other")
    worker = here.worker()
    task = queue(here, STAYS.format(60))
    until(lambda: bool(lines(here, "pids")), what="the call runs")
    (child,) = map(int, lines(here, "pids"))
    worker.send_signal(how)
    other.worker()
    until(lambda: other.state(task) == "waiting", what="it is uncertain", seconds=6 * LEASE)
    assert not is_alive(child)
    (ask,) = other.inbox()
    assert ask["kind"] == "uncertain"
    assert lines(here, "effects") == ["+"]
    if how is signal.SIGSTOP:
        worker.send_signal(signal.SIGCONT)
        until(lambda: "taken away" in here.log(), what="it is told")
        assert worker.poll() is None, "the worker goes on"
        assert other.inbox() == [ask]
    other.adjourn("settle", f"{task}.{ask['tool_call_id']}", "it-ran")
    until(
        lambda: other.state(task) == "succeeded", what="the agent is told, and goes on", seconds=30
    )
    assert lines(here, "effects") == ["+"]


def test_a_database_that_comes_and_goes_while_a_call_runs_costs_nothing(
    machine: Make, queue: Queue, postgres: Server, database: str
) -> None:
    """The end of a call is told again where the store failed, and what was about to begin begins."""
    here = machine("here")
    here.worker()
    for number in range(3):
        task = queue(here, STAYS.format(1.5))
        until(lambda: len(lines(here, "pids")) == number + 1, what="the call runs")  # noqa: B023 -- called at once
        for _ in range(10):
            end_all(postgres, database)
            time.sleep(0.2)  # the last ones are when it ends
        until(lambda: here.state(task) == "succeeded", what="it was done", seconds=30)  # noqa: B023 -- called at once
        assert lines(here, "effects") == ["+", "-"] * (number + 1)

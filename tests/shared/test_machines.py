"""Several machines, one store: who works, who died, and what became of what they ran."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.e2e.shell import until
from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine
from tests.shared.test_faults import end_all, name_of

pytestmark = [pytest.mark.serial, pytest.mark.timeout(200)]
Make = Callable[[str], Machine]
WAITS = "echo $$ >> began; until [ -e go ]; do sleep 0.05; done; echo done >> effects"
SLEEPS = "echo $$ >> began; exec sleep 60"


def began(machine: Machine) -> list[int]:
    path = machine.work / "began"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_decision_on_one_machine_starts_the_task_on_another(machine: Make) -> None:
    here, there = machine("here"), machine("there")
    there.worker()
    task = here.queue('[ "$AUTO_APPROVAL" ] || exit 90; echo "$ADJOURN_RUN_ID" > done')
    until(lambda: here.state(task) == "waiting", what="it asks")
    here.adjourn("approve", here.inbox()[0]["id"])
    until(lambda: here.state(task) == "succeeded", what="it was done")
    assert (here.work / "done").read_text().strip() == f"{task}.2"


def test_what_another_machine_ran_is_printed_there_and_nowhere_taken_for_silence(
    machine: Make,
) -> None:
    here, there = machine("here"), machine("there")
    there.worker()
    task = here.queue("echo printed")
    until(lambda: here.state(task) == "succeeded", what="it was done")
    assert there.adjourn("logs", task).out == "printed\n"
    elsewhere = here.adjourn("logs", task)
    assert (elsewhere.out, elsewhere.err) == (
        "",
        f"adjourn: what run {task}.1 printed is not here: it is kept on the machine that ran it\n",
    )


def test_all_machines_know_all_workers(machine: Make) -> None:
    one, other = machine("one"), machine("other")
    workers = [one.worker("--pool", "gpu"), other.worker("--max-active", "2")]
    status = one.json("worker", "--status")["workers"]
    assert {worker["pid"] for worker in status} == {process.pid for process in workers}
    assert {(worker["pool"], worker["max_active"]) for worker in status} == {
        ("gpu", 4),
        ("default", 2),
    }
    assert all(worker["host"] for worker in status)
    workers[0].terminate()
    workers[0].wait(30)
    assert [worker["pid"] for worker in other.json("worker", "--status")["workers"]] == [
        workers[1].pid
    ]
    workers[1].kill()
    workers[1].wait(30)
    until(
        lambda: not other.json("worker", "--status")["workers"],
        what="the dead one is forgotten",
        seconds=3 * LEASE,
    )


def test_what_a_dead_machine_was_executing_is_uncertain_and_nothing_of_it_lives(
    machine: Make,
) -> None:
    """The shim ends the run at its deadline, before anybody else may say what became of it."""
    dying, living = machine("dying"), machine("living")
    worker = dying.worker()
    task = living.queue(SLEEPS)
    until(lambda: bool(began(dying)), what="it runs")
    (child,) = began(dying)
    worker.kill()
    living.worker()
    until(lambda: living.state(task) == "waiting", what="it is uncertain", seconds=5 * LEASE)
    assert not is_alive(child)
    (ask,) = living.inbox()
    assert ask["kind"] == "uncertain"
    living.adjourn("settle", f"{task}.tc_1", "run-again")
    until(lambda: len(began(living)) == 2, what="a person had it run again")
    living.adjourn("cancel", task)


def test_a_worker_that_is_stopped_past_its_lease_loses_its_run_and_writes_nothing_more(
    machine: Make,
) -> None:
    stopped, other = machine("stopped"), machine("other")
    worker = stopped.worker()
    task = other.queue(SLEEPS)
    until(lambda: bool(began(stopped)), what="it runs")
    worker.send_signal(signal.SIGSTOP)
    other.worker()
    until(lambda: other.state(task) == "waiting", what="it is uncertain", seconds=5 * LEASE)
    assert not is_alive(began(stopped)[0])
    before = other.json("show", task)
    worker.send_signal(signal.SIGCONT)
    until(lambda: "taken away" in stopped.log(), what="it was told")
    assert other.json("show", task) == before
    place = next((stopped.place / "state" / "adjourn").glob("*/runs/*.1"))
    assert msgspec.json.decode((place / "result.json").read_bytes())["killed"] == "lease"
    other.adjourn("settle", f"{task}.tc_1", "it-did-not")


def test_a_worker_keeps_its_runs_for_many_leases(machine: Make) -> None:
    here, other = machine("here"), machine("other")
    here.worker()
    task = here.queue(f"sleep {5 * LEASE}; touch done")
    other.worker("--pool", "elsewhere")
    time.sleep(2 * LEASE)
    assert other.state(task) == "running"
    until(lambda: other.state(task) == "succeeded", what="it was done", seconds=6 * LEASE)


def test_another_worker_of_the_same_machine_adopts_what_the_dead_one_left(machine: Make) -> None:
    here = machine("here")
    first = here.worker()
    task = here.queue(f"echo $$ >> began; sleep {2 * LEASE}; touch done")
    until(lambda: bool(began(here)), what="it runs")
    here.worker()
    first.kill()
    until(lambda: here.state(task) == "succeeded", what="it was done", seconds=6 * LEASE)
    assert len(began(here)) == 1
    assert "adopted" in here.log(1)


def test_a_machine_without_the_workspace_leaves_the_task_alone(machine: Make) -> None:
    here, other = machine("here"), machine("other")
    inner = here.work / "inner"
    inner.mkdir()
    asks = '[ "$AUTO_APPROVAL" ] || exit 90; touch done'
    task = here.adjourn(
        "run", "--output", "json", "--", "sh", "-c", asks, cwd=inner, expect=10
    ).doc["task_id"]
    inner.rename(here.work / "away")
    other.worker()
    here.adjourn("approve", here.inbox()[0]["id"])
    until(
        lambda: here.state(here.queue("true")) == "succeeded",
        what="the worker works, and took something later",
    )
    assert here.state(task) == "queued"
    (here.work / "away").rename(inner)
    until(lambda: here.state(task) == "succeeded", what="the workspace is there again")


def test_drained_workers_pause_what_they_run(machine: Make) -> None:
    here, other = machine("here"), machine("other")
    worker = here.worker()
    task = other.queue("trap 'exit 1' INT; echo $$ >> began; sleep 60 & wait")
    until(lambda: bool(began(here)), what="it runs")
    worker.terminate()
    worker.wait(30)
    assert other.state(task) == "paused"
    assert not is_alive(began(here)[0])


@pytest.mark.parametrize("port", [1, None], ids=["nobody is there", "nobody answers"])
def test_a_worker_whom_nobody_can_wake_says_so_and_looks(machine: Make, port: int | None) -> None:
    """What does not answer holds up nothing but the wake-ups."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = port or silent.getsockname()[1]
        here = machine("here")
        here.environment["ADJOURN_LISTEN"] = f"postgresql://nobody:secret@127.0.0.1:{port}/none"
        task = here.waiting('[ "$AUTO_APPROVAL" ] || exit 90; echo done >> effects')
        here.worker()
        until(lambda: "cannot listen" in here.log(), what="it says so")
        here.adjourn("approve", here.inbox()[0]["id"])
        until(lambda: here.state(task) == "succeeded", what="it found the decision by looking")
        assert here.log().count("cannot listen") == 1
        assert "it looks every 5 s instead" in here.log()
        assert "secret" not in here.log()
        assert "LOOK  wake-ups" in here.adjourn("doctor", expect=1).out


@contextmanager
def away(postgres: Server, database: str) -> Iterator[None]:
    """Have a database that nobody reaches for a while."""
    postgres.do(f"ALTER DATABASE {name_of(database)} ALLOW_CONNECTIONS false")
    try:
        end_all(postgres, database)
        yield
    finally:
        postgres.do(f"ALTER DATABASE {name_of(database)} ALLOW_CONNECTIONS true")


@pytest.mark.parametrize(("signals", "grace"), [(1, 1), (2, 600)])
def test_a_worker_that_is_told_to_stop_leaves_a_result_on_disk_that_the_store_does_not_take(
    machine: Make, postgres: Server, database: str, signals: int, grace: int
) -> None:
    """A database that does not come back keeps nobody here.

    The next worker of this machine tells what became of the run.
    """
    here = machine("here")
    here.adjourn("tasks")
    (place,) = (here.place / "state" / "adjourn").glob("[0-9a-f]*")
    (place / "supervision.yaml").write_text(f"grace: {grace}")
    worker = here.worker()
    task = here.queue(WAITS)
    until(lambda: bool(began(here)), what="it runs")
    with away(postgres, database):
        (here.work / "go").touch()
        until(
            lambda: f"store error run={task}" in here.log(), what="it cannot tell how the run ended"
        )
        for _ in range(signals):
            worker.terminate()
            time.sleep(0.2)
        worker.wait(30)
    assert f"unreported run={task}" in here.log()
    assert worker.returncode == 0
    here.adjourn("worker", "--once")
    assert here.state(task) == "succeeded"
    assert (here.work / "effects").read_text() == "done\n"


def test_a_command_in_the_foreground_whose_database_is_away_at_its_end_is_settled_by_the_next(
    machine: Make, postgres: Server, database: str
) -> None:
    here = machine("here")
    process = here.start("run", "--", "sh", "-c", WAITS, cwd=here.work, stderr=subprocess.PIPE)
    until(lambda: bool(began(here)), what="it runs")
    with away(postgres, database):
        (here.work / "go").touch()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    (task,) = here.json("tasks")["tasks"]
    assert f"try: adjourn show {task['task_id']}" in said.decode(), (
        "said again as a whole it would run twice"
    )
    assert task["state"] == "succeeded"
    assert (here.work / "effects").read_text() == "done\n"

"""Many processes at once: one winner each, nobody sees a locked database, nobody waits long."""

import os
from pathlib import Path
from statistics import median

import pytest

from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.ask import Principal
from adjourn.core.outcome import Exit
from adjourn.core.states import TaskState
from adjourn.core.task import ProcessId
from adjourn.core.trail.events import first_broken
from adjourn.testing.values import a_spec, settlement_of
from adjourn.wiring.controller import open_controller
from tests.contract.crowd import Crowd, Order, Report, Try, crowd_of

SIZE = 32
ROUNDS = {"ci": 10, "full": 100}
PATIENCE = 2.0  # seconds
SHIM = ProcessId(boot_id="boot", pid=1, start_time=1)


def waiting_task(controller: Controller, root: Path) -> Order:
    """Return a task that left with exit code 90, and what it asks."""
    task = controller.tasks.start(a_spec(), by=Principal(name=f"uid:{os.getuid()}"))
    claimed = controller.runs.claim(task.id, supervisor="first")
    assert isinstance(claimed, Claimed)
    controller.runs.execute(claimed.run, shim=SHIM)
    controller.runs.finish(claimed.run, Exit(code=90))
    (ask,) = controller.scene(task.id).open_asks
    return Order(root=str(root), task=task.id, ask=ask.id)


def the_winner(tries: dict[str, Try | None], *, losers: set[str]) -> str:
    """Return who won; everyone else was told so, and nobody saw anything else."""
    errors = {name: each.error for name, each in tries.items() if each}
    assert set(errors.values()) - {None} <= losers, errors
    (winner,) = (name for name, error in errors.items() if error is None)
    return winner


def check_round(controller: Controller, order: Order, reports: list[Report]) -> None:
    decider = the_winner(
        {report.name: report.decision for report in reports}, losers={"AlreadySettled"}
    )
    for report in reports:
        assert report.decision
        assert report.name == decider or f"approved by uid:{decider} at" in report.decision.sentence
    starter = the_winner({report.name: report.claim for report in reports}, losers={"MoveRefused"})
    with controller.store.read() as view:
        settled = settlement_of(view.ask(order.ask))
        assert (settled.by, settled.reply) == (f"uid:{decider}", decider)
        assert [run.supervisor for run in view.runs(order.task)] == ["first", starter]
        assert view.task(order.task).state is TaskState.RUNNING


@pytest.mark.serial
@pytest.mark.timeout(600)
def test_of_many_processes_that_decide_and_start_at_once_one_wins(
    tmp_path: Path, sweep: str
) -> None:
    """C-R14, A-R60: one decision, one start, no locked database, and nobody waits as long as two seconds."""
    root = tmp_path / ".adjourn"
    controller = open_controller(str(root))
    waits: list[float] = []
    with crowd_of(SIZE, tmp_path) as crowd:
        for _ in range(ROUNDS[sweep]):
            order = waiting_task(controller, root)
            reports = crowd.obey(order)
            check_round(controller, order, reports)
            assert {report.opening.error for report in reports} == {None}
            waits += [
                each.seconds
                for report in reports
                for each in (report.decision, report.claim)
                if each
            ]
    with controller.store.read() as view:
        assert first_broken(view.trail()) is None
    controller.store.close()
    print(
        f"{SIZE} processes, {ROUNDS[sweep]} rounds: worst wait {max(waits):.3f} s, median {median(waits):.3f} s"
    )
    assert max(waits) < PATIENCE


@pytest.mark.serial
def test_many_processes_can_make_a_store_at_once(tmp_path: Path, sweep: str) -> None:
    """Nobody finds it half made."""
    with crowd_of(SIZE, tmp_path) as crowd:
        for number in range(ROUNDS[sweep] // 2):
            errors = _opened_by_all(crowd, tmp_path / f"place-{number}")
            assert errors == {}


def _opened_by_all(crowd: Crowd, place: Path) -> dict[str, str]:
    place.mkdir()
    reports = crowd.obey(Order(root=str(place / ".adjourn")))
    return {
        report.name: f"{report.opening.error}: {report.opening.sentence}"
        for report in reports
        if report.opening.error
    }

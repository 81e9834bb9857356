"""A standby that streams from the primary is promoted while workers are at work.

No call runs twice.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import psycopg
import pytest

from tests.e2e.shell import Shell, until
from tests.postgres import Server
from tests.recovery.standby import Pair, streaming_pair
from tests.shared.conftest import Machine

SCRIPT = '[ "$AUTO_APPROVAL" ] || exit 90; echo ${ADJOURN_TASK_ID} >> effects'
TASKS = 4
# Seconds during which the standby receives nothing, before it is promoted
LAGS = (0.0, 0.05, 0.3, 1.0)
COMMITS = 24  # about what the approvals and the runs of the tasks take
SEED = 21
# The last one leaves a run that was not begun and another whose end was not reported
SHARE = [(random.Random(SEED + n).randrange(COMMITS), LAGS[n]) for n in range(2)] + [(10, 0.3)]
# Every commit with every lag; in no order, so that a sweep that is cut short has some of all
ALL = random.Random(SEED).sample(
    [(commit, lag) for commit in range(COMMITS) for lag in LAGS], k=COMMITS * len(LAGS)
)


def cases(sweep: str) -> list[tuple[int, float]]:
    return ALL if sweep == "full" else SHARE


def machine_at(place: Path, pair: Pair, work: Path) -> Machine:
    return Machine(place, pair.url, work=work)


def place_of(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    return int(
        str(connection.execute("SELECT coalesce(max(no), 0) FROM adjourn.event").fetchall()[0][0])
    )


def fail_over_at(pair: Pair, commit: int, lag: float, *, begun_at: int) -> None:
    """Wait for a commit, leave the standby behind from there on, and promote it after the lag."""
    with psycopg.connect(pair.primary.conninfo("store"), autocommit=True) as look:
        deadline = time.monotonic() + 5
        while place_of(look) < begun_at + commit and time.monotonic() < deadline:
            time.sleep(0.001)
    if lag:
        pair.stop_sending()
        time.sleep(lag)
    pair.fail_over()


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[list[Machine]]:
    """Hold the machines of a test; afterwards nothing of them may be left."""
    machines: list[Machine] = []
    yield machines
    for each in machines:
        each.stop()
    for each in machines:
        assert each.end() == {}
    assert Shell(tmp_path).end() == {}


def until_usable(each: Machine) -> None:
    """Wait until a machine has found the new primary, and lacks nothing of what it has seen."""
    until(
        lambda: each.adjourn("run", "--", "true", expect=None).code == 0,
        what="it is usable",
        seconds=30,
    )


def settle_down(machines: list[Machine]) -> None:
    """Accept the promoted standby where something is missing, and have the workers do all that they would do."""
    for each in machines:
        done = each.adjourn("store", "accept", "--yes", expect=None)
        assert done.code == 0 or "lacks nothing" in done.err, done.err
    for each in machines:
        until_usable(each)
    last = ""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        now = machines[0].adjourn("tasks", "--output", "json").out
        if '"queued"' not in now and '"running"' not in now and now == last:
            return
        last = now
        time.sleep(0.3)


@pytest.mark.timeout(7200)
def test_no_call_runs_twice_when_a_lagging_standby_is_promoted_under_workers(
    postgres: Server, tmp_path: Path, sweep: str, ended: list[Machine]
) -> None:
    """Two workers of one machine.

    What it has seen is on disk before each start, so it notices what is missing.
    """
    if postgres.programs is None:
        pytest.skip("a server that is given cannot be replicated")
    refused = 0
    for number, (commit, lag) in enumerate(cases(sweep)):
        place = tmp_path / f"case-{number}"
        (place / "work").mkdir(parents=True)
        with streaming_pair(postgres) as pair:
            here = machine_at(place / "here", pair, place / "work")
            ended.append(here)
            for _ in range(TASKS):
                here.waiting(SCRIPT)
            asks = [ask["id"] for ask in here.inbox()]
            here.worker("--max-active", "2")
            here.worker("--max-active", "2")
            with psycopg.connect(pair.primary.conninfo("store"), autocommit=True) as look:
                begun_at = place_of(look)
            approving = here.start("approve", *asks, stdout=DEVNULL, stderr=DEVNULL)
            fail_over_at(pair, commit, lag, begun_at=begun_at)
            approving.wait(60)
            refused += here.adjourn("run", "--", "true", expect=None).code == 5
            settle_down([here])
            effects = Counter(
                (here.work / "effects").read_text().split()
                if (here.work / "effects").exists()
                else []
            )
            assert set(effects.values()) <= {1}, f"at commit {commit}, {lag} s: {effects}"
            here.stop()
        print(
            f"{number + 1} promotions, {refused} noticed that something was missing, 0 double starts",
            flush=True,
        )


@pytest.mark.timeout(1800)
def test_no_machine_runs_what_another_ran_when_the_standby_is_synchronous(
    postgres: Server, tmp_path: Path, sweep: str, ended: list[Machine]
) -> None:
    """A machine cannot know what another one saw.

    With a synchronous standby no commit that anybody saw is lost.
    """
    if postgres.programs is None:
        pytest.skip("a server that is given cannot be replicated")
    for number, commit in enumerate(range(0, COMMITS, 4) if sweep == "full" else [SHARE[0][0]]):
        place = tmp_path / f"case-{number}"
        (place / "work").mkdir(parents=True)
        with streaming_pair(postgres, is_synchronous=True) as pair:
            machines = [
                machine_at(place / name, pair, place / "work") for name in ("here", "there")
            ]
            ended.extend(machines)
            here = machines[0]
            for _ in range(TASKS):
                here.waiting(SCRIPT)
            asks = [ask["id"] for ask in here.inbox()]
            for each in machines:
                each.worker("--max-active", "2")
            with psycopg.connect(pair.primary.conninfo("store"), autocommit=True) as look:
                begun_at = place_of(look)
            approving = here.start("approve", *asks, stdout=DEVNULL, stderr=DEVNULL)
            fail_over_at(pair, commit, 0.0, begun_at=begun_at)
            approving.wait(60)
            for each in machines:
                until_usable(each)
            settle_down(machines)
            effects = Counter(
                (here.work / "effects").read_text().split()
                if (here.work / "effects").exists()
                else []
            )
            assert set(effects.values()) <= {1}, f"at commit {commit}: {effects}"
            for each in machines:
                each.stop()

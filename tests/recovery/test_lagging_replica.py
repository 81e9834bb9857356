"""A replica that lags behind is promoted.

No call that ran on the old primary runs a second time.
"""

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from adjourn.core.errors import StoreProblem
from adjourn.stores.postgres.restore_check import NewestSeen
from adjourn.stores.postgres.store import PostgresStore
from tests.e2e.shell import until
from tests.needs import needs
from tests.postgres import Server
from tests.shared.conftest import Machine, machine  # noqa: F401 -- a fixture
from tests.shared.desk import desk
from tests.shared.test_faults import name_of
from tests.stateful.world import shim_of

Make = Callable[[str], Machine]
TASKS = 6
SCRIPT = '[ "$AUTO_APPROVAL" ] || exit 90; echo ${ADJOURN_TASK_ID} >> effects'
# Seconds between the last effect and the failover
LAGS = {"ci": (0.0,), "full": (0.0, 0.05, 0.3, 1.0)}


class Snapshots:
    """Keeps the database as it was after each commit.

    What a replica has that stopped to follow there.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._held: list[tuple[int, str, psycopg.Connection[tuple[Any, ...]]]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        for _, _, connection in self._held:
            connection.close()

    def _watch(self) -> None:
        newest, place = 0, 0
        with psycopg.connect(self._url, autocommit=True) as look:
            while not self._is_over.wait(0.001):
                place = look.execute("SELECT coalesce(max(no), 0) FROM adjourn.event").fetchall()[
                    0
                ][0]
                if int(place) > newest:
                    newest = self._hold()

    def _hold(self) -> int:
        connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(self._url)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        place, name = connection.execute(
            "SELECT max(no), pg_export_snapshot() FROM adjourn.event"
        ).fetchall()[0]
        self._held.append((int(place), str(name), connection))
        return int(place)

    def dump(self, program: str, folder: Path) -> list[Path]:
        """Write what each of them has into a file, the oldest first."""
        files = []
        for place, name, _ in self._held:
            files.append(folder / f"{place}.dump")
            words = [
                program,
                "--format=custom",
                f"--snapshot={name}",
                "--schema=adjourn",
                "--schema=absurd",
            ]
            subprocess.run([*words, f"--file={files[-1]}", self._url], check=True, timeout=60)
        return files


def promote(server: Server, url: str, dump: Path, program: str) -> None:
    """Have the database be what a replica had."""
    server.do(f"DROP DATABASE {name_of(url)} WITH (FORCE)")
    server.do(f"CREATE DATABASE {name_of(url)} TEMPLATE template0")
    subprocess.run([program, "--no-owner", f"--dbname={url}", str(dump)], check=True, timeout=60)


def kill_worker(here: Machine) -> None:
    """Have a worker and its fork server die at once; what its shims run goes on."""
    worker = here.workers.pop()
    worker.send_signal(signal.SIGKILL)
    worker.wait()


@pytest.fixture
def programs(postgres: Server) -> Iterator[tuple[str, str]]:
    if postgres.programs:
        yield str(postgres.programs / "pg_dump"), str(postgres.programs / "pg_restore")
    else:
        yield needs("pg_dump"), needs("pg_restore")


@pytest.mark.timeout(900)
def test_no_call_runs_twice_on_a_replica_that_is_promoted_at_any_commit(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    programs: tuple[str, str],
    tmp_path: Path,
    sweep: str,
) -> None:
    here = machine("here")
    effects = here.work / "effects"
    effects.touch()
    home = Path(here.environment["XDG_STATE_HOME"])
    for lag in LAGS[sweep]:
        tasks = [here.waiting(SCRIPT) for _ in range(TASKS)]
        asks = [ask["id"] for ask in here.inbox()]
        here.worker()
        with Snapshots(database) as snapshots:
            here.adjourn("approve", *asks)
            until(lambda: len(effects.read_text().split()) == TASKS, what="all of them ran")
            time.sleep(lag)
            kill_worker(here)
            folder = tmp_path / f"dumps-{lag}"
            folder.mkdir()
            dumps = snapshots.dump(programs[0], folder)
        assert len(dumps) > 3
        (place,) = (home / "adjourn").glob("[0-9a-f]*")
        seen = (place / "seen.json").read_bytes()
        # What was seen of the trail has to do, without what the runs left
        shutil.rmtree(place / "runs")
        promoted_at = dumps if sweep == "full" else dumps[:3]
        for dump in promoted_at:
            promote(postgres, database, dump, programs[1])
            (place / "seen.json").write_bytes(seen)
            for _ in range(2):
                here.adjourn("worker", "--once", expect=None, cwd=here.work)
            assert sorted(effects.read_text().split()) == sorted(tasks), (
                f"promoted at {dump.name}, {lag} s later"
            )
        print(f"{lag} s: promoted at {len(promoted_at)} of {len(dumps)} commits: 0 double starts")
        effects.write_text("")
        shutil.rmtree(place)
        postgres.do(f"DROP DATABASE {name_of(database)} WITH (FORCE)")
        postgres.do(f"CREATE DATABASE {name_of(database)} TEMPLATE template0")


def test_a_process_that_is_behind_does_not_put_back_what_another_has_seen(tmp_path: Path) -> None:
    path = str(tmp_path / "seen.json")
    late = NewestSeen(path)
    late.note(1, b"one")
    early = NewestSeen(path)
    early.note(2, b"two")
    early.keep_synced(name="it")
    late.keep_synced(name="it")
    assert (late.place, NewestSeen(path).place) == (2, 2)


def test_a_machine_remembers_what_each_command_acknowledged_or_showed(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    """Also what it committed after the gate, and what other machines did that it has only seen."""
    here, there = machine("here"), machine("there")

    def has_seen_all(one: Machine) -> bool:
        (path,) = (one.place / "state" / "adjourn").glob("*/seen.json")
        newest = postgres.do("SELECT max(no) FROM adjourn.event", name_of(database))[0][0]
        return bool(NewestSeen(str(path)).place == newest)

    here.waiting(SCRIPT)
    assert has_seen_all(here)
    there.adjourn("approve", there.inbox()[0]["id"])
    assert has_seen_all(there)
    here.adjourn("worker", "--once", cwd=here.work)
    assert has_seen_all(here)
    there.adjourn("tasks")
    assert has_seen_all(there)


def test_a_worker_that_lives_on_starts_nothing_that_another_process_of_its_machine_started(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    programs: tuple[str, str],
    tmp_path: Path,
) -> None:
    """It has not seen itself how far the old primary was; the other process has."""
    here = machine("here")
    effects = here.work / "effects"
    task = here.waiting(SCRIPT)
    worker = here.worker("--max-active", "1")
    with Snapshots(database) as snapshots:
        worker.send_signal(signal.SIGSTOP)
        here.adjourn("approve", here.inbox()[0]["id"])
        here.adjourn("resume", task, cwd=here.work)
        dumps = snapshots.dump(programs[0], tmp_path)
    approved = next(dump for dump in dumps[1:] if dump != dumps[0])
    promote(postgres, database, approved, programs[1])
    worker.send_signal(signal.SIGCONT)
    until(lambda: "is an older copy" in here.log(), what="it is noticed")
    assert effects.read_text().split() == [task]


def test_no_gate_opens_where_the_machine_cannot_remember_how_far_the_trail_is(
    database: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    store = PostgresStore(database, seen=str(seen / "seen.json"))
    office = desk(store)
    claimed = office.claim(office.start())
    shutil.rmtree(seen)
    with pytest.raises(StoreProblem, match="cannot be written"):
        office.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
    store.close()

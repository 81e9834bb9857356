"""Many decisions in one command.

10,000 waiting tasks are approved through a pipe, and one worker runs them all.
"""

import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import _floor_of_bulk
from _figures import Figure, ms, report, show, words
from _filled import copy_of, fill, open_asks, waits_with
from _measure import Cost, adjourn, cpu_of_children, environment, middle, python
from _processes import cpu_of, family, memory_of, until, worker

from adjourn.stores.sqlite.database import SqliteConnection
from adjourn.wiring import STORE

SECONDS, FLAT = 2.0, 1.2
_COMMAND = ("/bin/true",)
_ACTIVE = "8"
_PARTS = 10
_LONG = 3600.0  # seconds
_READ_IDS = "import json, sys; [print(ask['id']) for ask in json.load(sys.stdin)['asks']]"
_PIPE = '"$1" inbox --limit 100000 --output json | "$2" -c "$3" | "$1" approve - > /dev/null'


class Sample(NamedTuple):
    """How the worker stands when so many tasks have ended."""

    ended: int
    seconds: float
    cpu: float
    rss: float


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--no-worker", action="store_true", help="leave out the worker, which takes minutes"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as folder:
        place = Path(folder) / "workspace"
        place.mkdir()
        fill(place / STORE, given.tasks, waits_with(_COMMAND), workspace=str(place))
        code = _decided(place, given.rounds)
        if not given.no_worker:
            code |= _worked_off(place, given.tasks)
    return code


# --- the decisions --------------------------------------------------------------------------------


def _decided(place: Path, rounds: int) -> int:
    ids = open_asks(place, limit=100_000)
    costs = [(_floor(ids), _approved(place, ids), _piped(place)) for _ in range(rounds)]
    floor, alone, piped = (middle(each) for each in zip(*costs, strict=True))
    against = f"python + sqlite3 {ms(floor.wall)}, {alone.wall / floor.wall:.1f}x"
    title = f"{len(ids):,} tasks approved in one command, median of {rounds} interleaved rounds"
    code = report(
        title,
        [
            Figure(
                "adjourn approve -, wall", ms(alone.wall), against, alone.wall, SECONDS, unit=" s"
            )
        ],
    )
    print(f"CPU: {ms(alone.cpu)} against {ms(floor.cpu)}, {alone.cpu / floor.cpu:.1f}x", end="; ")
    print(f"the whole pipe, with the inbox as JSON in front: {ms(piped.wall)}")
    return code


def _floor(ids: list[str]) -> Cost:
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as folder:
        database = os.path.join(folder, "floor.db")
        _floor_of_bulk.prepare(database, ids)
        return _timed(
            [python(), _floor_of_bulk.__file__, database], cwd=folder, said="\n".join(ids)
        )


def _approved(place: Path, ids: list[str]) -> Cost:
    with copy_of(place) as copied:
        os.sync()  # what was copied is not ours to wait for
        took = _timed([adjourn(), "approve", "-"], cwd=str(copied), said="\n".join(ids))
        assert not open_asks(copied, limit=1)
    return took


def _piped(place: Path) -> Cost:
    with copy_of(place) as copied:
        os.sync()
        took = _timed(
            ["sh", "-c", _PIPE, "sh", adjourn(), python(), _READ_IDS], cwd=str(copied), said=""
        )
        assert not open_asks(copied, limit=1)
    return took


def _timed(command: list[str], *, cwd: str, said: str) -> Cost:
    before, began = cpu_of_children(), time.perf_counter()
    subprocess.run(
        command,
        cwd=cwd,
        env=environment(),
        input=said.encode(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return Cost(cpu=cpu_of_children() - before, wall=time.perf_counter() - began)


# --- the worker -----------------------------------------------------------------------------------


def _worked_off(place: Path, tasks: int) -> int:
    _timed(
        [adjourn(), "approve", "-"], cwd=str(place), said="\n".join(open_asks(place, limit=100_000))
    )
    samples = _samples(place, tasks)
    first, last = samples[0], samples[-1]
    show(
        ("ended", "after", "CPU of worker and fork server", "their memory"),
        [
            (f"{each.ended:,}", f"{each.seconds:.1f} s", f"{each.cpu:.1f} s", f"{each.rss:.1f} MB")
            for each in samples
        ],
    )
    pace = [
        (after.cpu - before.cpu) / (after.ended - before.ended)
        for before, after in pairwise(samples)
    ]
    return report(
        f"A worker runs them all, {_ACTIVE} at a time, in {last.seconds:.0f} s: the last tenth against the first",
        [
            Figure(
                "memory", f"{last.rss:.1f} MB", f"{first.rss:.1f} MB", last.rss / first.rss, FLAT
            ),
            Figure(
                "CPU of worker and fork server, a task",
                ms(pace[-1]),
                ms(pace[0]),
                pace[-1] / pace[0],
                FLAT,
            ),
        ],
    )


def _samples(place: Path, tasks: int) -> list[Sample]:
    """Let a worker run, and look at it soon after its start and at each tenth."""
    database = SqliteConnection(str(place / STORE / "adjourn.db"))
    with worker(place, "--max-active", _ACTIVE) as pid:
        parts = [part for part, name in family(pid).items() if name.startswith("adjourn")][:2]
        began = time.monotonic()
        samples = [_sample(parts, _ended(database), 0.0)]
        for part in range(1, _PARTS + 1):
            _await(database, tasks * part // _PARTS)
            samples.append(_sample(parts, _ended(database), time.monotonic() - began))
    database.close()
    return samples


def _await(database: SqliteConnection, ended: int) -> None:
    until(lambda: _ended(database) >= ended, what=f"{ended} tasks have ended", seconds=_LONG)


def _sample(parts: list[int], ended: int, seconds: float) -> Sample:
    return Sample(
        ended, seconds, sum(map(cpu_of, parts)), sum(memory_of(part).rss for part in parts)
    )


def _ended(database: SqliteConnection) -> int:
    time.sleep(0.1)
    ((count,),) = database.all("SELECT count(*) FROM task WHERE state = 'succeeded'")
    return int(count)


if __name__ == "__main__":
    sys.exit(main())

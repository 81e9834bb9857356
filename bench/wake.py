"""From a decision to its process.

A worker among 100,000 waiting tasks, against a bare fork and exec of the same child.
"""

import os
import random
import select
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from _figures import Figure, ms, report, show, words
from _filled import Waiting, copy_of, fill, store_with, waits_for_approval, waits_with
from _measure import environment, percentile, python
from _processes import PATIENCE, until, worker

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.stores.sqlite import store
from adjourn.stores.sqlite.store import wake_all
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

MEDIAN, P99 = 3.0, 10.0
_POLLS = {5: 4, 30: 1}  # seconds between two looks, and how many such spans are watched
_PER_SPAN = 16  # decisions in one span, each at a moment of its own
_PERSON = Principal(name=f"uid:{os.getuid()}")
# Seconds; a decision after the look would be found by the wake-ups of the runs that it started
_MARGIN = 0.1
_REST = 0.02  # seconds for the worker to get back to sleep

# The child tells through a named pipe that it has started, and which one it is.
_CHILD = "import posix; posix.write(posix.open({path!r}, 1), b'{number:6d}')"
_WORD = 6


class Woken(NamedTuple):
    """Seconds until the child says that it runs.

    Since the decision was on disk, and since decide() was called.
    """

    since_commit: float
    since_call: float


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--waiting", type=int, default=100_000, help="tasks that wait in the store")
    parser.add_argument(
        "--no-polls", action="store_true", help="leave out what a poll gives, which takes a minute"
    )
    given = parser.parse_args()
    with (
        copy_of(store_with(given.waiting, waits_for_approval)) as place,
        _bench(place, given.rounds + 3) as bench,
    ):
        bare, woken = bench.measured(given.rounds)
    code = _told(bare, woken, waiting=given.waiting)
    if not given.no_polls:
        _show_polls(median(bare))
    return code


def _told(bare: Sequence[float], woken: Sequence[Woken], *, waiting: int) -> int:
    floor = median(bare)
    against = f"fork and exec {ms(floor)}"
    times = [each.since_commit for each in woken]
    whole = [each.since_call for each in woken]
    figures = [
        Figure(
            "until the child has started, median",
            ms(median(times)),
            against,
            median(times) / floor,
            MEDIAN,
        ),
        Figure(
            "until the child has started, p99",
            ms(percentile(times, 0.99)),
            against,
            percentile(times, 0.99) / floor,
            P99,
        ),
    ]
    title = f"From a decision on disk to the child's first statement, {waiting:,} tasks waiting, {len(bare)} interleaved rounds"
    code = report(title, figures)
    print(
        f"for comparison: since the call of decide(), {ms(median(whole))}, {median(whole) / floor:.2f}x,",
        end=" ",
    )
    print(f"p99 {ms(percentile(whole, 0.99))}; fork and exec, p99 {ms(percentile(bare, 0.99))}")
    return code


def _show_polls(floor: float) -> None:
    """Print what the same worker takes that hears of no decision and looks every so often."""
    rows = []
    for interval, spans in _POLLS.items():
        with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
            times = _polled(Path(place), interval, spans)
        rows.append(
            (
                f"{interval} s",
                ms(median(times)),
                ms(percentile(times, 0.99)),
                f"{median(times) / floor:,.0f}x",
            )
        )
    print(
        f"\nA worker that is told nothing and polls, {_PER_SPAN} decisions at random moments of each span"
    )
    show(("look every", "median", "p99", "of the floor"), rows)


def _polled(place: Path, interval: int, spans: int) -> list[float]:
    (place / STORE).mkdir(mode=0o700)
    (place / STORE / "supervision.yaml").write_text(f"poll_interval: {interval}\n")
    with _bench(place, 1 + spans * _PER_SPAN) as bench:
        bench.woken()  # its end is the last that the worker hears; from here on it polls
        return [took for _ in range(spans) for took in bench.polled(interval)]


@contextmanager
def _bench(place: Path, count: int) -> Generator["Bench", None, None]:
    """Lend a worker on the store at `place`, and that many tasks whose approval starts the child."""
    path = str(place / "started")
    os.mkfifo(path)
    bench = Bench(place, path, fill(place / STORE, count, _waits(path), workspace=str(place)))
    with worker(place, "--max-active", str(_PER_SPAN)):
        yield bench


def _waits(path: str) -> Waiting:
    def waits(controller: Controller, number: int, workspace: str) -> Task:
        return waits_with(_child(path, number))(controller, number, workspace)

    return waits


def _child(path: str, number: int) -> tuple[str, ...]:
    return (python(), "-I", "-S", "-c", _CHILD.format(path=path, number=number))


class Bench:
    """Decides through a controller of its own, and hears which child has started."""

    def __init__(self, place: Path, path: str, tasks: list[str]) -> None:
        self._place = place
        self._path = path
        self._ear = os.open(path, os.O_RDWR)
        self._poll = select.poll()
        self._poll.register(self._ear, select.POLLIN)
        self._controller = open_controller(str(place / STORE))
        self._tasks = tasks
        self._asks = [self._controller.scene(task).open_asks[0].id for task in tasks]
        self._next = 0
        self._committed = 0.0
        store.wake_all = (
            self._wake_all
        )  # in this process alone, which decides; the worker is another

    def measured(self, rounds: int) -> tuple[list[float], list[Woken]]:
        """Return the times of bare starts and of decisions, taken in turn."""
        bare: list[float] = []
        woken: list[Woken] = []
        for number in range(-3, rounds):
            alone, after_decision = self._bare(), self.woken()
            if number >= 0:  # the first ones fill caches
                bare.append(alone)
                woken.append(after_decision)
        return bare, woken

    def _bare(self) -> float:
        argv, variables = _child(self._path, 0), environment()
        began = time.perf_counter()
        # Not os.fork: copying the page tables of this process, which filled a store, would flatter
        # us.
        pid = os.posix_spawn(argv[0], argv, variables)
        self._hear()
        took = time.perf_counter() - began
        os.waitpid(pid, 0)
        return took

    def woken(self) -> Woken:
        """Approve a task, hear it start, and leave when it has ended and the worker sleeps."""
        number, called, committed = self._decide()
        assert self._hear() == number
        started = time.perf_counter()
        self._rest(number)
        return Woken(started - committed, started - called)

    def polled(self, interval: float) -> list[float]:
        """Approve tasks at random moments of one span between two looks, unheard, and return how long each took to start."""
        began = time.perf_counter()
        decided: dict[int, float] = {}
        for phase in sorted(random.uniform(0, interval - _MARGIN) for _ in range(_PER_SPAN)):  # noqa: S311 -- no secret
            time.sleep(max(0.0, began + phase - time.perf_counter()))
            with _unheard(self._place / STORE / "wake"):
                number, _, committed = self._decide()
            decided[number] = committed
        took = [
            time.perf_counter() - decided[number]
            for number in (self._hear() for _ in range(_PER_SPAN))
        ]
        for number in decided:
            self._rest(number)
        return took

    def _decide(self) -> tuple[int, float, float]:
        number = self._next
        self._next += 1
        reply = Reply(ask_id=self._asks[number], verb=Verb.APPROVE)
        called = time.perf_counter()
        self._controller.decisions.decide([reply], by=_PERSON)
        return number, called, self._committed

    def _wake_all(self, directory: str) -> None:
        """Note the moment at which a commit is over and its wake-ups are not sent yet."""
        self._committed = time.perf_counter()
        wake_all(directory)

    def _hear(self) -> int:
        assert self._poll.poll(PATIENCE * 1000), "the child never started"
        return int(os.read(self._ear, _WORD))

    def _rest(self, number: int) -> None:
        until(lambda: self._has_ended(self._tasks[number]), what="the task has ended")
        time.sleep(_REST)

    def _has_ended(self, task_id: str) -> bool:
        with self._controller.store.read() as view:
            return view.task(task_id).state is TaskState.SUCCEEDED


@contextmanager
def _unheard(ears: Path) -> Generator[None, None, None]:
    """Put the ears aside, so that a commit wakes nobody."""
    aside = ears.with_name("aside")
    ears.rename(aside)
    try:
        yield
    finally:
        aside.rename(ears)


if __name__ == "__main__":
    sys.exit(main())

"""What waiting costs: the first page of the inbox as it grows, the bytes of a waiting task, and the processes it keeps."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _figures import Figure, ms, report, show, words
from _filled import Waiting, copy_of, store_with, waits_for_an_answer, waits_for_approval
from _measure import Cost, adjourn, adopt_orphans, cost_of, environment, interleaved, launch

from adjourn.cli.app import run
from adjourn.stores.sqlite.database import SqliteConnection
from adjourn.wiring import STORE

GROWTH = 2.0
BYTES = 2_048
_FEW = 100
_SIZED = 20_000  # enough for the pages of every index to be as full as they will be


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--waiting", type=int, default=100_000, help="tasks that wait in the large store"
    )
    given = parser.parse_args()
    adopt_orphans()
    figures = [
        *_growth(given.rounds, waiting=given.waiting),
        *_sizes(
            {waits_for_approval: given.waiting, waits_for_an_answer: min(given.waiting, _SIZED)},
            verbose=given.verbose,
        ),
        _processes(),
    ]
    return report(f"The inbox with {given.waiting:,} tasks waiting", figures)


# --- the first page -------------------------------------------------------------------------------


def _growth(rounds: int, *, waiting: int) -> list[Figure]:
    few, many = store_with(_FEW, waits_for_approval), store_with(waiting, waits_for_approval)
    with copy_of(few) as small, copy_of(many) as large:
        commands = interleaved({"few": _command(small), "many": _command(large)}, rounds=rounds)
        inside = interleaved(
            {"few": _in_process(small), "many": _in_process(large)}, rounds=5 * rounds
        )
    return [
        _grown("first page, the whole command", commands["few"].wall, commands["many"].wall),
        _grown("first page, without the start of Python", inside["few"].wall, inside["many"].wall),
    ]


def _grown(what: str, few: float, many: float) -> Figure:
    return Figure(what, ms(many), f"with {_FEW} waiting {ms(few)}", many / few, GROWTH)


def _command(place: Path) -> Callable[[], Cost]:
    return lambda: cost_of([adjourn(), "inbox"], cwd=str(place))


def _in_process(place: Path) -> Callable[[], Cost]:
    """Return the verb itself.

    It opens the store, reads the page and prints it, as often as it is called.
    """

    def page() -> Cost:
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            cpu, wall = time.process_time(), time.perf_counter()
            code = run(["inbox", "--store", str(place / STORE)])
            cost = Cost(cpu=time.process_time() - cpu, wall=time.perf_counter() - wall)
        assert code == 0
        return cost

    return page


# --- bytes ----------------------------------------------------------------------------------------


def _sizes(wanted: dict[Waiting, int], *, verbose: bool) -> list[Figure]:
    return [_size(waiting, count, verbose=verbose) for waiting, count in wanted.items()]


def _size(waiting: Waiting, count: int, *, verbose: bool) -> Figure:
    what = f"a task that {waiting.__name__.replace('_', ' ')}"
    with copy_of(store_with(count, waiting)) as place:
        path = place / STORE / "adjourn.db"
        db = SqliteConnection(str(path))
        db.do("PRAGMA wal_checkpoint(TRUNCATE)")
        size = path.stat().st_size
        if verbose:
            _show_bytes(what, db, count)
        db.close()
    return Figure(what, f"{size / 1e6:.1f} MB", f"{count:,} tasks", size / count, BYTES, unit=" B")


def _show_bytes(what: str, db: SqliteConnection, count: int) -> None:
    statement = "SELECT name, sum(pgsize), sum(payload), sum(ncell) FROM dbstat GROUP BY name HAVING sum(pgsize) > ? ORDER BY 2 DESC"
    rows = db.all(statement, count)
    print(f"\n{what}: bytes of each table and index")
    cells = [
        (str(name), f"{size / count:.0f}", f"{payload / count:.0f}", f"{n / count:.1f}")
        for name, size, payload, n in rows
    ]
    show(("", "on disk", "payload", "rows"), cells)


# --- processes ------------------------------------------------------------------------------------


def _processes() -> Figure:
    """Have real commands pause, and count what still lives of them."""
    scripts = ("exit 90", "adjourn ask 'Go on?'")
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        env = environment() | {"PATH": f"{os.path.dirname(adjourn())}:{os.environ['PATH']}"}
        for script in scripts:
            pid = launch([adjourn(), "run", "--", "sh", "-c", script], cwd=place, env=env)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert code == 10, code
        time.sleep(0.5)  # the fork server leaves right after its supervisor
        left = _living_children()
    return Figure(
        "processes left by paused commands", str(left), f"{len(scripts)} pauses", left, 0, unit=""
    )


def _living_children() -> int:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children", encoding="ascii") as file:
        return len(file.read().split())


if __name__ == "__main__":
    sys.exit(main())

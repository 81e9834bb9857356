"""What it costs to start.

CPU of `adjourn approve` and `adjourn inbox`, against a bare interpreter.
"""

import re
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from statistics import median

from _figures import Figure, ms, report, show, words
from _filled import copy_of, open_asks, some, store_with, waits_for_approval
from _measure import Cost, adjourn, adopt_orphans, cost_of, environment, interleaved, python

GOAL = 7.0
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)")


def main() -> int:
    """Measure, print, and say by the exit code whether the goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--waiting", type=int, default=100_000, help="tasks that wait in the store")
    given = parser.parse_args()
    adopt_orphans()
    with copy_of(store_with(given.waiting, waits_for_approval)) as place:
        code = _measured(place, given.rounds, waiting=given.waiting, verbose=given.verbose)
        if given.verbose:
            _show_imports(place, ["inbox"])
    return code


def _measured(place: Path, rounds: int, *, waiting: int, verbose: bool) -> int:
    asks = some(open_asks(place, limit=waiting), rounds + 1)
    run = partial(cost_of, cwd=str(place))

    def approve() -> Cost:
        return run([adjourn(), "approve", asks.pop()])

    cases = {
        "python -c pass": lambda: run([python(), "-c", "pass"]),
        "approve": approve,
        "inbox": lambda: run([adjourn(), "inbox"]),
    }
    if verbose:
        cases["import click, msgspec, apsw"] = lambda: run(
            [python(), "-c", "import click, msgspec, apsw"]
        )
    costs = interleaved(cases, rounds=rounds)
    floor = costs.pop("python -c pass").cpu
    figures = [
        _figure(f"adjourn {verb}", costs.pop(verb).cpu, floor) for verb in ("approve", "inbox")
    ]
    code = report(
        f"CPU of a short command with {waiting:,} tasks waiting, median of {rounds} interleaved rounds",
        figures,
    )
    for name, cost in costs.items():
        print(f"for comparison, {name} alone: {ms(cost.cpu)}, {cost.cpu / floor:.2f}x")
    return code


def _figure(what: str, cpu: float, floor: float) -> Figure:
    return Figure(what, ms(cpu), f"python -c pass {ms(floor)}", cpu / floor, GOAL)


def _show_imports(place: Path, verb: list[str], *, rounds: int = 9) -> None:
    """Print the ten modules whose own code takes longest to import."""
    own: dict[str, list[int]] = defaultdict(list)
    whole: dict[str, list[int]] = defaultdict(list)
    for _ in range(rounds):
        command = [python(), "-X", "importtime", adjourn(), *verb]
        done = subprocess.run(
            command, cwd=place, env=environment(), capture_output=True, text=True, check=True
        )
        for alone, cumulative, module in _IMPORT.findall(done.stderr):
            own[module].append(int(alone))
            whole[module].append(int(cumulative))
    slowest = sorted(own, key=lambda module: -median(own[module]))[:10]
    total = sum(median(times) for times in own.values())
    print(
        f"\nimports of `adjourn {' '.join(verb)}`: {len(own)} modules, {total / 1000:.1f} ms with the tracing"
    )
    show(("", "own", "with its own"), [_row(module, own, whole) for module in slowest])
    for package in ("adjourn", "click", "msgspec", "apsw"):
        mine = sum(
            median(times) for module, times in own.items() if module.partition(".")[0] == package
        )
        print(f"  all of {package}: {mine / 1000:.1f} ms")


def _row(module: str, own: dict[str, list[int]], whole: dict[str, list[int]]) -> tuple[str, ...]:
    return module, ms(median(own[module]) / 1e6), ms(median(whole[module]) / 1e6)


if __name__ == "__main__":
    sys.exit(main())

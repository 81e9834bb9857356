"""What a worker costs while nothing happens.

CPU over a minute and memory, with 100,000 tasks waiting.
"""

import sys
import time
from pathlib import Path

from _figures import Figure, ms, report, show, words
from _filled import copy_of, store_with, waits_for_approval
from _processes import cpu_of, family, memory_of, worker

PERCENT, MEGABYTES = 0.1, 40.0


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--waiting", type=int, default=100_000, help="tasks that wait in the store")
    given = parser.parse_args()
    with copy_of(store_with(given.waiting, waits_for_approval)) as place:
        figures = _figures(place, given.seconds, verbose=given.verbose)
    return report(f"A worker that has nothing to do, {given.waiting:,} tasks waiting", figures)


def _figures(place: Path, seconds: float, *, verbose: bool) -> list[Figure]:
    with worker(place) as pid:
        time.sleep(2)
        processes = family(pid)
        before = {each: cpu_of(each) for each in processes}
        time.sleep(seconds)
        used = {each: cpu_of(each) - before[each] for each in processes}
        memory = {each: memory_of(each) for each in processes}
    if verbose:
        parts = [
            (name, ms(used[each]), *(f"{part:.1f} MB" for part in memory[each]))
            for each, name in processes.items()
        ]
        show(("", "CPU", "RSS", "nobody else's", "PSS"), parts)
    total = sum(used.values())
    # Resident, with what the fork server shares with the worker counted once: it is a fork of it.
    resident = memory[pid].rss + sum(memory[each].own for each in processes if each != pid)
    against = f"alone {memory[pid].rss:.1f} MB, PSS of both {sum(each.pss for each in memory.values()):.1f} MB"
    return [
        Figure(
            "CPU, worker and fork server",
            ms(total),
            f"{seconds:.0f} s",
            100 * total / seconds,
            PERCENT,
            unit=" %",
        ),
        Figure(
            "memory, worker and fork server",
            f"{resident:.1f} MB",
            against,
            resident,
            MEGABYTES,
            unit=" MB",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())

"""What a worker on PostgreSQL costs while nothing happens.

CPU over a minute, with the thread that keeps leases, and memory.
"""

import sys
import time

from _figures import Figure, ms, report, show, words
from _filled import waits_for_approval
from _processes import cpu_of, family, memory_of
from _shared import load, share, shared_store

PERCENT, MEGABYTES = 0.2, 40.0


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    share(parser, full=100_000, small=1_000)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with shared_store(given.url) as shared:
        shared.fill(given.waiting, waits_for_approval)
        with shared.workers(1) as (pid,):
            time.sleep(2)
            processes = family(pid)
            before = {each: cpu_of(each) for each in processes}
            time.sleep(given.seconds)
            used = {each: cpu_of(each) - before[each] for each in processes}
            memory = {each: memory_of(each) for each in processes}
    if given.verbose:
        show(
            ("", "CPU", "RSS"),
            [
                (name, ms(used[each]), f"{memory[each].rss:.1f} MB")
                for each, name in processes.items()
            ],
        )
    total = sum(used.values())
    resident = memory[pid].rss + sum(memory[each].own for each in processes if each != pid)
    return report(
        f"A worker on PostgreSQL that has nothing to do, {given.waiting:,} tasks waiting, {load()}",
        [
            Figure(
                "CPU, worker and fork server",
                ms(total),
                f"{given.seconds:.0f} s",
                100 * total / given.seconds,
                PERCENT,
                unit=" %",
            ),
            Figure(
                "memory, worker and fork server",
                f"{resident:.1f} MB",
                "",
                resident,
                MEGABYTES,
                unit=" MB",
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())

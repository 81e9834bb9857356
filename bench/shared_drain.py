"""How throughput grows with workers on PostgreSQL.

Tasks that sleep, drained by one, two and four workers of one machine.
"""

import sys
import time

from _figures import Figure, number, report, words
from _filled import waits_with
from _shared import Shared, load, shared_store

_GOALS = {2: 1.8, 4: 3.0}
_ACTIVE = 4  # runs at a time of one worker


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument(
        "--url", help="a database that nobody needs (default: a server of the bench's own)"
    )
    parser.add_argument(
        "--sleep",
        type=float,
        default=5.0,
        help="seconds that a task sleeps: long enough that no core is short",
    )
    parser.add_argument(
        "--waves", type=int, default=4, help="how often a worker fills all its places"
    )
    parser.add_argument(
        "--small", dest="waves", action="store_const", const=1, help="the same with one wave"
    )
    given = parser.parse_args()
    with shared_store(given.url) as shared:
        rates = {
            count: _rate(shared, count, sleep=given.sleep, waves=given.waves)
            for count in (1, *_GOALS)
        }
    perfect = _ACTIVE / given.sleep
    return report(
        f"Tasks drained a second on PostgreSQL, {_ACTIVE} at a time by each worker, each sleeps {given.sleep:g} s (one worker "
        f"could do {perfect:.2f}), {load()}",
        [_figure(count, goal, rates) for count, goal in _GOALS.items()],
    )


def _figure(count: int, goal: float, rates: dict[int, float]) -> Figure:
    return Figure(
        f"{count} workers",
        f"{number(rates[count])}/s",
        f"one {number(rates[1])}/s",
        rates[count] / rates[1],
        goal,
        at_least=True,
    )


def _rate(shared: Shared, count: int, *, sleep: float, waves: int) -> float:
    asks = shared.asks(count * _ACTIVE * waves, waits_with(("/bin/sleep", str(sleep))))
    with shared.workers(count, "--max-active", str(_ACTIVE)):
        began = time.perf_counter()
        shared.approve(asks)
        shared.until_over(asks, look=0.1)
        return len(asks) / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())

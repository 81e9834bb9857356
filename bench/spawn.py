"""From the decision to the process.

A shim, its gate and its child, against a bare fork and exec of the same child.
"""

import os
import select
import sys
import tempfile
import time
from statistics import median

from _figures import Figure, ms, report, words
from _measure import environment, percentile, python

from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import ShimSpec

MEDIAN, P99 = 3.0, 10.0
_PATIENCE_MS = 30_000

# The child tells through a named pipe that it has started: its descriptors are not ours to choose.
_CHILD = "import posix; posix.write(posix.open({path!r}, 1), b'!')"


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    forks = ForkServer.start()
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        bench = Bench(forks, place)
        bare, gated, whole = bench.measured(given.rounds)
    forks.close()
    floor = median(bare)
    against = f"fork and exec {ms(floor)}"
    figures = [
        Figure(
            "until the child has started, median",
            ms(median(gated)),
            against,
            median(gated) / floor,
            MEDIAN,
        ),
        Figure(
            "until the child has started, p99",
            ms(percentile(gated, 0.99)),
            against,
            percentile(gated, 0.99) / floor,
            P99,
        ),
    ]
    code = report(f"A child behind its gate, {given.rounds} interleaved rounds", figures)
    print(
        f"for comparison: fork and exec, p99 {ms(percentile(bare, 0.99))}; until the shim has left {ms(median(whole))}"
    )
    return code


class Bench:
    """Starts the same child in two ways, and hears when it has started."""

    def __init__(self, forks: ForkServer, place: str) -> None:
        self._forks = forks
        self._place = place
        path = os.path.join(place, "started")
        os.mkfifo(path)
        self._ear = os.open(path, os.O_RDWR)
        self._poll = select.poll()
        self._poll.register(self._ear, select.POLLIN)
        self._argv = (python(), "-I", "-S", "-c", _CHILD.format(path=path))
        self._env = environment()
        self._number = 0

    def measured(self, rounds: int) -> tuple[list[float], list[float], list[float]]:
        """Return the times of a bare start, of one behind a gate, and of the latter until its shim has left."""
        bare: list[float] = []
        gated: list[float] = []
        whole: list[float] = []
        for number in range(-3, rounds):
            alone, started, ended = self._bare(), *self._gated()
            if number >= 0:  # the first ones fill caches
                bare.append(alone)
                gated.append(started)
                whole.append(ended)
        return bare, gated, whole

    def _bare(self) -> float:
        began = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os.execve(self._argv[0], self._argv, self._env)
        self._hear()
        took = time.perf_counter() - began
        os.waitpid(pid, 0)
        return took

    def _hear(self) -> None:
        assert self._poll.poll(_PATIENCE_MS), "the child never started"
        os.read(self._ear, 1)

    def _gated(self) -> tuple[float, float]:
        self._number += 1
        folder = os.path.join(self._place, str(self._number))
        os.mkdir(folder)
        spec = ShimSpec(run_dir=folder, argv=self._argv, cwd=self._place, env=self._env)
        began = time.perf_counter()
        shim = self._forks.fork_shim(spec)
        shim.open_gate()
        self._hear()
        started = time.perf_counter() - began
        shim.wait(None)
        ended = time.perf_counter() - began
        shim.close()
        return started, ended


if __name__ == "__main__":
    sys.exit(main())

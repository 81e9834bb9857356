"""Sweeps kill points and power losses over as many servers as there are processors."""

import collections
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tests.crash.inject import Aim, Mode
from tests.crash.powerloss import Loss, Outage
from tests.crash.scenario import Fault, Point, Verdict
from tests.crash.tools import REPOSITORY, Tools

KILLS = (Mode.BEFORE, Mode.AFTER, Mode.TORN)


class HarnessFailed(Exception):
    """Not the program under test is at fault, but what tests it."""


class Line:
    """A server process to which one kill point at a time is sent."""

    def __init__(self, tools: Tools, *, modules: Iterable[str]) -> None:
        argv = [sys.executable, "-m", "tests.crash.server", tools.library, tools.effect, *modules]
        env = _clean(os.environ) | {"LD_PRELOAD": tools.library}
        self._server = subprocess.Popen(
            argv, cwd=REPOSITORY, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def play(self, job: Point | Outage) -> Verdict | Loss:
        """Have one job done; raises what went wrong with the harness itself."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(msgspec.json.encode(job) + b"\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        if not line:
            raise HarnessFailed(f"{job}: the server is gone")
        answer = msgspec.json.decode(line, type=Verdict | Loss | Fault)
        if isinstance(answer, Fault):
            raise HarnessFailed(f"{job}\n{answer.trace}")
        return answer

    def play_all(self, jobs: Iterable[Point | Outage]) -> list[Verdict | Loss]:
        """Have one job after the other done."""
        return [self.play(job) for job in jobs]

    def close(self) -> None:
        """Let it end; its directory goes with it."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        try:
            self._server.wait(timeout=30)
        except subprocess.TimeoutExpired:  # a point of it hangs
            self._server.terminate()
            self._server.wait(timeout=30)
        self._server.stdout.close()


class Sweep:
    """Servers side by side, and what came of every point that they played."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines

    def points(self, scenario: str, *, role: str = "", instance: int = 0) -> list[Point]:
        """Count the step's calls by playing it once unharmed; return every way to die in it."""
        counted = self.play([Point(scenario=scenario, aim=Aim(role=role, instance=instance))])[0]
        if counted.broken:
            raise HarnessFailed(f"{scenario} breaks promises unharmed: {counted.broken}")
        return [
            Point(scenario=scenario, aim=Aim(at=at, mode=mode, role=role, instance=instance))
            for at, letter in enumerate(counted.trace, start=1)
            for mode in KILLS
            if mode is not Mode.TORN or letter in "WP"
        ]

    def play(self, points: Iterable[Point]) -> list[Verdict]:
        """Play every point, on whichever server is free."""
        return [answer for answer in self._share_out(points) if isinstance(answer, Verdict)]

    def suffer(self, outages: Iterable[Outage]) -> list[Loss]:
        """Judge every outage, on whichever server is free."""
        return [answer for answer in self._share_out(outages) if isinstance(answer, Loss)]

    def _share_out(self, jobs: Iterable[Point | Outage]) -> list[Verdict | Loss]:
        waiting = iter(list(jobs))  # one list iterator for all threads: each job is taken once
        with ThreadPoolExecutor(len(self._lines)) as threads:
            shares = [threads.submit(line.play_all, waiting) for line in self._lines]
            return [answer for done in shares for answer in done.result()]


@contextlib.contextmanager
def sweeping(tools: Tools, *, modules: Iterable[str], lines: int | None = None) -> Iterator[Sweep]:
    """Start one server for each processor, with `modules` imported, and stop them in the end."""
    count = lines or len(os.sched_getaffinity(0))
    running = [Line(tools, modules=modules) for _ in range(count)]
    try:
        yield Sweep(running)
    finally:
        for line in running:
            line.close()


def share(points: list[Point], *, of: int, seed: int) -> list[Point]:
    """Choose `of` points at random with a fixed seed.

    With fewer points each is played more than once.
    """
    dice = random.Random(seed)
    chosen = points * (of // len(points)) + dice.sample(points, of % len(points))
    dice.shuffle(chosen)
    return chosen


def report(verdicts: list[Verdict]) -> str:
    """Return one line for each broken promise, the most frequent first, with a point that shows it."""
    seen: collections.Counter[str] = collections.Counter()
    shown: dict[str, Verdict] = {}
    for verdict in verdicts:
        for sentence in verdict.broken:
            seen[sentence] += 1
            shown.setdefault(sentence, verdict)
    return "\n".join(
        f"{times}x {sentence} · first: {_where(shown[sentence])}"
        for sentence, times in seen.most_common()
    )


def _where(verdict: Verdict) -> str:
    aim = verdict.point.aim
    return f"{verdict.point.scenario} {aim.role} {aim.mode.name} call {aim.at} ({verdict.what})"


def _clean(environ: os._Environ[str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("ADJOURN_", "INJECT_", "AUTO_"))
    }

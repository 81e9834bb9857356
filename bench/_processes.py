"""What living processes cost, read from /proc.

A worker, its fork server, and whatever they started.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from _measure import adjourn, environment

from adjourn.wiring import STORE, has_worker

PATIENCE = 120.0  # seconds
_NANO = 1e9


class Memory(NamedTuple):
    """Megabytes: all that is resident, what is nobody else's of it, and the share where shared pages are divided."""

    rss: float
    own: float
    pss: float


@contextmanager
def worker(place: Path, *options: str) -> Generator[int, None, None]:
    """Lend the pid of a worker on the store in that directory.

    It is told to stop at the end, and waited for.
    """
    command = [adjourn(), "worker", *options]
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=place, env=environment(), stdin=null, stdout=null, stderr=null
    )
    try:
        until(lambda: has_worker(str(place / STORE), "default"), what="the worker is there")
        time.sleep(1)  # its first look is over
        yield process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE)


def until(is_so: Callable[[], bool], *, what: str, seconds: float = PATIENCE) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.005)


def family(pid: int) -> dict[int, str]:
    """Return a process and all below it, each with its name."""
    found = {pid: Path(f"/proc/{pid}/comm").read_text().strip()}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                found |= family(int(child))
    return found


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used, to the nanosecond.

    A clock tick is a tenth of what is allowed.
    """
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / _NANO


def memory_of(pid: int) -> Memory:
    """Return how much memory a process has."""
    lines = [
        line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    ]
    of = {name: int(kilobytes) * 1.024 / 1e3 for name, kilobytes, *_ in lines}
    return Memory(rss=of["Rss:"], own=of["Private_Clean:"] + of["Private_Dirty:"], pss=of["Pss:"])

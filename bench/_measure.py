"""What running a command costs: its own time, and that of all that it started."""

import contextlib
import ctypes
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import NamedTuple

_SET_CHILD_SUBREAPER = 36
_NOISE = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPROFILEIMPORTTIME", "NO_COLOR")


class Cost(NamedTuple):
    """Seconds."""

    cpu: float
    wall: float


def python() -> str:
    """Return the interpreter that both floor and subject run on."""
    return sys.executable


def adjourn() -> str:
    """Return the console script that is installed beside the interpreter."""
    path = os.path.join(os.path.dirname(sys.executable), "adjourn")
    if not os.access(path, os.X_OK):
        sys.exit(f"there is no {path}: run this by ./dev bench, or where adjourn is installed")
    return path


# Never a person's own
os.environ.setdefault(
    "XDG_STATE_HOME", f"{tempfile.gettempdir()}/adjourn-bench-{os.getuid()}-state"
)


def environment() -> dict[str, str]:
    """Return what a person's shell would hand down.

    Nothing that makes an interpreter slower, nothing of an outer run.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _NOISE and not name.startswith("ADJOURN_")
    }


def adopt_orphans() -> None:
    """Have whatever a command leaves behind become a child of this process, so that its CPU is counted, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cost_of(
    command: Sequence[str],
    *,
    cwd: str,
    exit_code: int = 0,
    env: Mapping[str, str] | None = None,
    spare: Collection[int] = (),
) -> Cost:
    """Run a command to its end; the wall clock stops with it, the CPU is counted until all that it started has ended.

    Children to `spare` were there before and stay: a server, a worker.
    """
    before = cpu_of_children()
    started = time.perf_counter()
    code = os.waitstatus_to_exitcode(os.waitpid(launch(command, cwd=cwd, env=env), 0)[1])
    wall = time.perf_counter() - started
    if code != exit_code:
        sys.exit(f"{' '.join(command)}: exit code {code}, and {exit_code} was expected")
    reap_all(spare=spare)
    return Cost(cpu=cpu_of_children() - before, wall=wall)


def launch(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str] | None = None,
    silenced: Sequence[int] = (1,),
) -> int:
    """Start a command with nothing to read and nobody who listens, and return its pid."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, *silenced)]
    with contextlib.chdir(cwd):
        return os.posix_spawnp(
            command[0], tuple(command), environment() if env is None else env, file_actions=quiet
        )


def reap_all(*, spare: Collection[int] = ()) -> None:
    """Wait until no child is left, adopted ones included, but for those to spare."""
    with contextlib.suppress(ChildProcessError):
        while left := _children() - set(spare) if spare else {-1}:
            os.waitpid(left.pop(), 0)


def _children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}


def cpu_of_children() -> float:
    """Return the seconds of CPU of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interleaved(cases: Mapping[str, Callable[[], Cost]], *, rounds: int) -> dict[str, Cost]:
    """Measure the cases in turn, round after round, and return the median of each.

    A busy machine is busy for all.
    """
    for case in cases.values():
        case()  # compiles, fills caches, and does not count
    seen: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            seen[name].append(case())
    return {name: middle(costs) for name, costs in seen.items()}


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of each."""
    return Cost(cpu=median(cost.cpu for cost in costs), wall=median(cost.wall for cost in costs))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]

"""What a step of an agent costs as its conversation grows: the bytes it writes, and the time it takes."""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _figures import Figure, ms, report, words

from adjourn.core.ask import Principal
from adjourn.core.identity import ProcessId
from adjourn.core.task import Spec
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

FEW, MANY = 100, 5_000
BODY = b'{"role":"assistant","text":"' + b"x" * 2_000 + b'"}'
MORE_BYTES, MORE_TIME = 1.2, 1.5


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        few, many = (cost(os.path.join(place, str(count)), count, steps=given.steps) for count in (FEW, MANY))
    figures = [
        Figure(f"bytes at {MANY:,} messages", f"{many[0]:,.0f}", f"at {FEW} {few[0]:,.0f}", many[0] / few[0], MORE_BYTES),
        Figure(f"time at {MANY:,} messages", ms(many[1]), f"at {FEW} {ms(few[1])}", many[1] / few[1], MORE_TIME),
    ]
    return report(f"One message of 2 KB is added, median of {given.steps}", figures)


def cost(place: str, count: int, *, steps: int) -> tuple[float, float]:
    """Return what one more message writes, and how long that takes, after so many."""
    os.makedirs(place)
    controller = open_controller(os.path.join(place, STORE))
    spec = Spec(runner="agent", argv=("adjourn", "_agent"), workspace=place, prompt="work", setup="{}")
    task = controller.start(spec, by=Principal(name=f"uid:{os.getuid()}"), supervisor="bench")
    run = f"{task.id}.1"
    claimed = controller.claimed(task.id, supervisor="bench")
    assert claimed is not None
    controller.execute(claimed.run, shim=ProcessId(boot_id="bench", pid=1, start_time=1))
    controller.append_messages(run, [BODY] * count, after=0)
    bytes_written, seconds = [], []
    for number in range(count, count + steps):
        before, began = written(), time.perf_counter()
        controller.append_messages(run, [BODY], after=number)
        seconds.append(time.perf_counter() - began)
        bytes_written.append(written() - before)
    controller.store.close()
    return median(bytes_written), median(seconds)


def written() -> int:
    """Return how many bytes this process has handed to the system to write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


if __name__ == "__main__":
    sys.exit(main())

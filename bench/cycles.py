"""What a long history costs.

One task pauses and comes back 500 times, against a fresh one in a fresh store.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from _figures import Figure, ms, report, words
from _measure import (
    Cost,
    adjourn,
    adopt_orphans,
    cost_of,
    environment,
    interleaved,
    launch,
    reap_all,
)

GOAL = 1.2
_COMPARED = 50
_PAUSED = 10

# Each script counts its runs in a file of its own, so that every manifest and every key is a new
# one.
_COUNT = 'n=$(($(cat "$1" 2> /dev/null) + 1)); echo $n > "$1"; '
_AGAIN = 'i=0; while [ $i -lt $1 ]; do i=$((i + 1)); "$2" resume "$3" "$4" > /dev/null; [ $? = 10 ] || exit 1; done'


class Kind(NamedTuple):
    """A way to pause, and the reply that lets it go on."""

    name: str
    script: str
    reply: str


class Task(NamedTuple):
    """A paused task, and the directory of its store."""

    id: str
    kind: Kind
    place: str


KINDS = (
    Kind("approval", _COUNT + 'echo "{\\"step\\": $n}"; exit 90', "--approve-all"),
    Kind("question", _COUNT + 'exec adjourn ask --key "step $n" "Go on with step $n?"', "yes"),
)


def main() -> int:
    """Measure, print, and say by the exit code whether the goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    given = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        old = [_paused(kind, os.path.join(place, f"old-{kind.name}")) for kind in KINDS]
        new = [_paused(kind, os.path.join(place, f"new-{kind.name}")) for kind in KINDS]
        _age(old, given.cycles - _COMPARED)
        figures = [
            figure
            for aged, fresh in zip(old, new, strict=True)
            for figure in _compared(aged, fresh)
        ]
    title = f"The last {_COMPARED} of {given.cycles} cycles, interleaved with the first {_COMPARED} of another task, medians"
    return report(title, figures)


def _paused(kind: Kind, place: str) -> Task:
    os.mkdir(place)
    command = [
        adjourn(),
        "run",
        "--output",
        "json",
        "--",
        "sh",
        "-c",
        kind.script,
        "sh",
        os.path.join(place, "count"),
    ]
    done = subprocess.run(
        command, cwd=place, env=environment(), stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == _PAUSED, done
    return Task(json.loads(done.stdout)["task_id"], kind, place)


def _age(tasks: list[Task], cycles: int) -> None:
    """Let the tasks go through all cycles but the last, side by side."""
    pids = [
        launch(["sh", "-c", _AGAIN, "sh", str(cycles), *_cycle(task)], cwd=task.place)
        for task in tasks
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert not any(codes), codes
    reap_all()


def _cycle(task: Task) -> tuple[str, str, str]:
    return adjourn(), task.id, task.kind.reply


def _compared(old: Task, new: Task) -> list[Figure]:
    costs = interleaved({"old": _cycling(old), "new": _cycling(new)}, rounds=_COMPARED - 1)
    name = old.kind.name
    return [
        Figure(
            f"{name}, CPU",
            ms(costs["old"].cpu),
            f"first {ms(costs['new'].cpu)}",
            costs["old"].cpu / costs["new"].cpu,
            GOAL,
        ),
        Figure(
            f"{name}, wall",
            ms(costs["old"].wall),
            f"first {ms(costs['new'].wall)}",
            costs["old"].wall / costs["new"].wall,
            GOAL,
        ),
    ]


def _cycling(task: Task) -> Callable[[], Cost]:
    program, name, reply = _cycle(task)
    return lambda: cost_of([program, "resume", name, reply], cwd=task.place, exit_code=_PAUSED)


if __name__ == "__main__":
    sys.exit(main())

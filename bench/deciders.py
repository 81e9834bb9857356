"""What it is like when everybody comes at once.

32 processes decide and start, and each waits for its turn.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import NamedTuple

from _figures import Figure, ms, report, words
from _filled import fill, waits_with
from _measure import adjourn, adopt_orphans, launch, python, reap_all

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.errors import Conflict
from adjourn.system.machine import new_id
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

GOAL = 2.0
_PROCESSES = 32
_COMMAND = ("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90; echo ran >> ran')
_LOST = 4  # the exit code of whoever came second
_PERSON = Principal(name=f"uid:{os.getuid()}")


class Turn(NamedTuple):
    """How long one process waited to decide and start, and what came of it."""

    seconds: float
    verdict: str


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args()
    adopt_orphans()
    times = max(1, given.rounds // 5)
    commands, bare = _commands(times)
    figures = [
        *_figures(
            "each has a task of its own", _apart(given.rounds), winners=given.rounds * _PROCESSES
        ),
        *_figures("all want the same task", _together(given.rounds), winners=given.rounds),
        _errors("all want the same task, as whole commands", commands, winners=times),
    ]
    code = report(
        f"{_PROCESSES} processes decide and start at once, {given.rounds} rounds", figures
    )
    print(
        f"for comparison: whole commands, worst {ms(_worst(commands))}; as many bare interpreters at once, {ms(_worst(bare))}"
    )
    return code


def _figures(what: str, turns: Sequence[Turn], *, winners: int) -> list[Figure]:
    worst, usual = _worst(turns), median(turn.seconds for turn in turns)
    wait = Figure(
        f"{what}: worst wait", ms(worst), f"median {ms(usual)}", worst, GOAL, unit=" s", below=True
    )
    return [wait, _errors(what, turns, winners=winners)]


def _errors(what: str, turns: Sequence[Turn], *, winners: int) -> Figure:
    """Count errors, and winners that are too many or too few."""
    errors = [turn.verdict for turn in turns if turn.verdict not in {"won", "lost"}]
    for error in sorted(set(errors)):
        print(f"{what}: {errors.count(error)} times {error}", file=sys.stderr)
    won = sum(turn.verdict == "won" for turn in turns)
    count = len(errors) + abs(won - winners)
    return Figure(f"{what}: errors", str(count), f"{won:,} of {winners:,} won", count, 0, unit="")


def _worst(turns: Sequence[Turn]) -> float:
    return max(turn.seconds for turn in turns)


# --- the store alone: processes that have started already -----------------------------------------


def _apart(rounds: int) -> list[Turn]:
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        tasks = _waiting(place, rounds * _PROCESSES)
        return _race(place, [tasks[number::_PROCESSES] for number in range(_PROCESSES)])


def _together(rounds: int) -> list[Turn]:
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        tasks = _waiting(place, rounds)
        return _race(place, [tasks] * _PROCESSES)


def _waiting(place: str, count: int) -> list[str]:
    return fill(os.path.join(place, STORE), count, waits_with(_COMMAND), workspace=place)


def _race(place: str, shares: list[list[str]]) -> list[Turn]:
    """Let every process go through its share of tasks, one a round, all at the same moment."""
    context = get_context("fork")
    gate, told = context.Barrier(len(shares)), context.Queue()
    racers = [context.Process(target=_racer, args=(place, tasks, gate, told)) for tasks in shares]
    for racer in racers:
        racer.start()
    turns = [turn for _ in racers for turn in told.get(timeout=120)]
    for racer in racers:
        racer.join()
    return turns


def _racer(place: str, tasks: list[str], gate: Barrier, told: "Queue[list[Turn]]") -> None:
    controller = open_controller(os.path.join(place, STORE))
    asks = [controller.scene(task).open_asks[0].id for task in tasks]
    turns: list[Turn] = []
    for task, ask in zip(tasks, asks, strict=True):
        gate.wait()
        began = time.perf_counter()
        verdict = _decide_and_start(controller, task, ask)
        turns.append(Turn(time.perf_counter() - began, verdict))
    told.put(turns)


def _decide_and_start(controller: Controller, task: str, ask: str) -> str:
    try:
        controller.decisions.decide([Reply(ask_id=ask, verb=Verb.APPROVE)], by=_PERSON)
        controller.runs.claim(task, supervisor=new_id())
    except Conflict:
        return "lost"
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is an error that a person would see
        return repr(error)
    return "won"


# --- whole commands -------------------------------------------------------------------------------


def _commands(rounds: int) -> tuple[list[Turn], list[Turn]]:
    """Let real commands race for one task each round, interleaved with as many bare interpreters."""
    turns: list[Turn] = []
    bare: list[Turn] = []
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        for task in _waiting(place, rounds):
            bare += _all_at_once([python(), "-c", "pass"], place)
            turns += _all_at_once([adjourn(), "resume", task, "--approve-all"], place)
        with open(os.path.join(place, "ran"), encoding="ascii") as file:
            ran = len(file.readlines())
    return turns if ran == rounds else [
        *turns,
        Turn(0, f"{ran} runs, and {rounds} were approved"),
    ], bare


def _all_at_once(command: list[str], place: str) -> list[Turn]:
    began = time.perf_counter()
    waiting = {launch(command, cwd=place, silenced=(1, 2)) for _ in range(_PROCESSES)}
    turns: list[Turn] = []
    while waiting:
        pid, status = os.waitpid(-1, 0)
        if pid in waiting:  # and not what a command left behind
            waiting.remove(pid)
            turns.append(
                Turn(time.perf_counter() - began, _verdict(os.waitstatus_to_exitcode(status)))
            )
    reap_all()
    return turns


def _verdict(code: int) -> str:
    return {0: "won", _LOST: "lost"}.get(code, f"exit code {code}")


if __name__ == "__main__":
    sys.exit(main())

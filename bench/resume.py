"""What a resume costs: a trivial command comes back in a new process, against a bare Python script on SQLite.

Where `adjourn[agent]` is installed, then also what `agent.py` shows: an agent comes back, beside three peers.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec

import _floor_of_resume
from _figures import Figure, ms, report, words
from _filled import fill, waits_with
from _measure import Cost, adjourn, adopt_orphans, cost_of, interleaved, python

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller

GOAL = 4.5  # a mark is synced before the gate, and the store is checked against its past
COMMAND = ("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')


def main() -> int:
    """Measure, print, and say by the exit code whether the goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--agent-rounds", type=int, default=7, help="of the agent and its peers; 0 leaves them out"
    )
    given = parser.parse_args()
    adopt_orphans()
    missed = of_a_command(given.rounds)
    return of_an_agent(given.agent_rounds) or missed


def of_an_agent(rounds: int) -> int:
    """Measure the built-in agent beside its peers, if it is here."""
    if not rounds:
        return 0
    if find_spec("pydantic_ai") is None:
        print("an agent beside its peers: python bench/resume.py where adjourn[agent] is installed")
        return 0
    import agent  # needs what the core install does not bring

    return agent.beside_peers(agent.HOMES, rounds=rounds)


def of_a_command(rounds: int) -> int:
    """Measure a command against the floor."""
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        costs = interleaved(_cases(place, rounds + 1), rounds=rounds)
    floor = costs["floor"]
    figures = [
        _figure("adjourn resume --approve-all, wall", costs["decides"].wall, floor.wall),
        _figure("adjourn resume once approved, wall", costs["approved"].wall, floor.wall),
    ]
    code = report(f"A trivial command comes back, median of {rounds} interleaved rounds", figures)
    for name, what in (("decides", "--approve-all"), ("approved", "once approved")):
        cpu = costs[name].cpu
        print(
            f"CPU of all its processes, {what}: {ms(cpu)} against {ms(floor.cpu)}, {cpu / floor.cpu:.2f}x"
        )
    return code


def _figure(what: str, seconds: float, floor: float) -> Figure:
    return Figure(what, ms(seconds), f"python + sqlite3 {ms(floor)}", seconds / floor, GOAL)


def _cases(place: str, count: int) -> dict[str, Callable[[], Cost]]:
    undecided, decided = _waiting(place, count), _waiting(place, count)
    _approve(place, decided)
    database = os.path.join(place, "floor.db")
    plain = [f"task-{number}" for number in range(count)]
    db = _floor_of_resume.prepare(database, plain, list(COMMAND))

    def floor() -> Cost:
        assert db.in_transaction is False  # and it lives as long as this
        return cost_of([python(), _floor_of_resume.__file__, database, plain.pop()], cwd=place)

    return {
        "floor": floor,
        "decides": lambda: cost_of(
            [adjourn(), "resume", undecided.pop(), "--approve-all"], cwd=place
        ),
        "approved": lambda: cost_of([adjourn(), "resume", decided.pop()], cwd=place),
    }


def _waiting(place: str, count: int) -> list[str]:
    return fill(os.path.join(place, STORE), count, waits_with(COMMAND), workspace=place)


def _approve(place: str, tasks: list[str]) -> None:
    controller = open_controller(os.path.join(place, STORE))
    for task in tasks:
        (ask,) = controller.scene(task).open_asks
        controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=Principal(name=f"uid:{os.getuid()}")
        )


if __name__ == "__main__":
    sys.exit(main())

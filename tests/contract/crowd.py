"""One of many processes that decide and start at once.

`python -m tests.contract.crowd GATE NAME`.
"""

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from adjourn.controller.context import Context
from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.errors import AdjournError
from adjourn.process.processes import LocalProcesses
from adjourn.runners import find_runner
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.system.machine import new_id, now
from adjourn.wiring.controller import open_controller
from adjourn.wiring.surroundings import open_gate
from tests.authorities import everybody

ROOT = Path(__file__).parents[2]


class Order(msgspec.Struct, frozen=True):
    """What everyone is to fight for."""

    root: str
    task: str = ""
    ask: str = ""


class Try(msgspec.Struct, frozen=True):
    """What came of one try, and how long it took."""

    error: str | None
    sentence: str
    seconds: float


class Report(msgspec.Struct, frozen=True):
    """What one member of the crowd saw."""

    name: str
    opening: Try
    decision: Try | None = None
    claim: Try | None = None


class Crowd:
    """Many processes, waiting for orders."""

    def __init__(self, place: Path, *, size: int) -> None:
        self._gate = (place / "gate").open("w")
        command = [sys.executable, "-m", "tests.contract.crowd", str(place / "gate")]
        self._members = [
            subprocess.Popen(
                [*command, f"member-{number}"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for number in range(size)
        ]

    def obey(self, order: Order) -> list[Report]:
        """Let all of them carry out the order at the same moment."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        for member in self._members:
            assert member.stdin
            member.stdin.write(msgspec.json.encode(order) + b"\n")
            member.stdin.flush()
        assert {self._line(member) for member in self._members} == {b"ready\n"}
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return [msgspec.json.decode(self._line(member), type=Report) for member in self._members]

    def _line(self, member: "subprocess.Popen[bytes]") -> bytes:
        assert member.stdout
        return member.stdout.readline()

    def leave(self) -> None:
        """Let them all go."""
        for member in self._members:
            member.communicate()
        self._gate.close()


@contextmanager
def crowd_of(size: int, place: Path) -> Iterator[Crowd]:
    crowd = Crowd(place, size=size)
    try:
        yield crowd
    finally:
        crowd.leave()


def main(gate: str, name: str) -> None:
    """Obey the orders on stdin."""
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        report = obey(order, gate=gate, name=name)
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()


def obey(order: Order, *, gate: str, name: str) -> Report:
    """Decide and take the task together with all the others.

    Where there is no task, make the store with them.
    """
    if order.task:
        return decide_and_start(order, gate=gate, name=name)
    pass_gate(gate)
    return Report(name=name, opening=tried(partial(open_and_close, order.root)))


def open_and_close(root: str) -> None:
    open_controller(root).store.close()


def decide_and_start(order: Order, *, gate: str, name: str) -> Report:
    opening = tried(partial(open_and_close, order.root))
    controller = where_everybody_may(order.root)
    pass_gate(gate)
    reply = Reply(ask_id=order.ask, verb=Verb.APPROVE, text=name)
    decision = tried(
        partial(controller.decisions.decide, [reply], by=Principal(name=f"uid:{name}"))
    )
    claim = tried(partial(controller.runs.claim, order.task, supervisor=name))
    controller.store.close()
    return Report(name=name, opening=opening, decision=decision, claim=claim)


def where_everybody_may(root: str) -> Controller:
    """Return a controller of the store for people of all names.

    Whose process it is does not matter here.
    """
    return Controller(
        Context(
            SqliteStore(root),
            clock=now,
            new_id=new_id,
            find_runner=find_runner,
            open_processes=lambda: LocalProcesses(root),
            open_gate=lambda: open_gate(root),
            **everybody(),
        )
    )


def pass_gate(gate: str) -> None:
    """Say that we are ready, and wait until it opens for all."""
    with open(gate, encoding="utf-8") as file:
        sys.stdout.buffer.write(b"ready\n")
        sys.stdout.buffer.flush()
        fcntl.flock(file, fcntl.LOCK_SH)


def tried(act: Callable[[], object]) -> Try:
    """Do something, and tell what came of it."""
    started = time.perf_counter()
    try:
        act()
    except AdjournError as error:
        return Try(type(error).__name__, error.sentence, time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 whatever anybody sees is told
        return Try(repr(error), "", time.perf_counter() - started)
    return Try(None, "", time.perf_counter() - started)


if __name__ == "__main__":
    main(*sys.argv[1:])

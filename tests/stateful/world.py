"""A world in which several controllers live the same life.

One clock, the same ids, the same processes.
"""

import shutil
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec

from adjourn.controller.context import Context
from adjourn.controller.controller import Controller
from adjourn.controller.gate import PolicyGate
from adjourn.core.ask import Ask
from adjourn.core.call import Call, Command
from adjourn.core.errors import AdjournError
from adjourn.core.outcome import Exit
from adjourn.core.policy.opening import Surroundings
from adjourn.core.policy.policy import NO_POLICY, Policy
from adjourn.core.states import CallState
from adjourn.core.task import DEFAULT_POOL, ProcessId, Run, Task, run_id
from adjourn.core.trail.events import Event, Sealed
from adjourn.ports.store import Store
from adjourn.ports.world import Ended, NeverStarted, ShimState, StartMark, StillRuns, Vanished
from adjourn.runners.command import CommandRunner
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.testing.memory_store import MemoryStore
from adjourn.testing.values import NOON
from tests.authorities import everybody

MEMORY_DISK = Path("/dev/shm")


class Process:
    """What a run looks like from outside the store: who supervises it, and how far it got."""

    def __init__(self, run: Run, call: Call) -> None:
        self.run = run
        self.call = call
        self.state: ShimState = NeverStarted()

    @property
    def is_alive(self) -> bool:
        return isinstance(self.state, StillRuns)

    def open_gate(self) -> None:
        self.state = StillRuns()

    def end(self, exit_: Exit) -> None:
        self.state = Ended(exit_)

    def vanish(self) -> None:
        self.state = Vanished()


class FakeProcesses:
    """Knows which supervisors live and what became of each run's process."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.of_run: dict[str, Process] = {}
        self.marks: dict[str, StartMark] = {}

    def supervisor_lives(self, supervisor: str) -> bool:
        return supervisor not in self.dead

    def shim_state(self, run_id: str, shim: ProcessId) -> ShimState:
        assert shim == shim_of(run_id)
        return self.of_run[run_id].state

    def start_mark(self, call_id: str, *, place: str) -> StartMark | None:
        del place
        return self.marks.get(call_id)

    def leave_start_mark(self, call_id: str, mark: StartMark) -> None:
        self.marks[call_id] = mark

    def found_at(self, place: str) -> ShimState:
        return self.of_run[place].state

    def has_live_run(self, task_id: str) -> bool:  # noqa: ARG002 -- a name of the port
        """Nothing of a damaged task lives here."""
        return False

    def shim_at(self, place: str) -> ProcessId | None:
        return shim_of(place)

    def kill(self, supervisor: str) -> None:
        self.dead.add(supervisor)

    def living(self, name: str) -> str:
        """Return the supervisor of that name that lives: whoever follows a dead one is another."""
        return next(
            each for each in (f"{name}-{number}" for number in count()) if each not in self.dead
        )


class Rulebook:
    """The policy in force, whatever the workspace."""

    def __init__(self) -> None:
        self.policy = NO_POLICY

    def current(self, workspace: str) -> Policy:
        assert workspace
        return self.policy


class Disk:
    """The files that every command depends on."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def look(self, _command: Command, _workspace: str | None = None) -> Surroundings:
        return Surroundings(program="/bin/deploy", files=dict(self.files))


def shim_of(run_id: str) -> ProcessId:
    return ProcessId(boot_id="boot", pid=1 + sum(map(ord, run_id)), start_time=7)


class Ids:
    """Gives the same ids to all in every step, whatever happened in the steps before."""

    def __init__(self) -> None:
        self._step = self._count = 0

    def begin(self, step: int) -> None:
        self._step, self._count = step, 0

    def __call__(self) -> str:
        self._count += 1
        return (
            b32encode(sha256(f"{self._step}/{self._count}".encode()).digest()[:16])
            .decode()
            .rstrip("=")
            .lower()
        )


class Rows(msgspec.Struct, frozen=True):
    """All there is in a store, as of one moment."""

    tasks: list[Task]
    runs: dict[str, list[Run]]
    calls: dict[str, list[Call]]
    asks: dict[str, list[Ask]]
    events: dict[str, list[Event]]
    approved: dict[str, list[Call]]
    left_open: dict[str, list[str]]
    inbox: list[Ask]
    inbox_size: int
    running: list[Task]
    ready: list[Task]
    overdue: list[Ask]
    trail: list[Sealed]


def rows_of(store: Store, *, now: int) -> Rows:
    with store.read() as view:
        tasks = view.tasks(limit=10_000)
        names = [task.id for task in tasks]
        last_runs = [run_id(task.id, task.runs) for task in tasks if task.runs]
        return Rows(
            tasks=tasks,
            runs={name: view.runs(name) for name in names},
            calls={name: view.calls(name) for name in names},
            asks={name: view.asks(name) for name in names},
            events={name: view.events(name) for name in names},
            approved={name: view.calls_in(name, CallState.APPROVED) for name in names},
            left_open={
                run: [turn.thing for turn in view.turns_left_open(run)] for run in last_runs
            },
            inbox=view.open_asks(limit=10_000),
            inbox_size=view.count_open_asks(),
            running=view.running(),
            ready=view.queued(pool=DEFAULT_POOL, limit=2),
            overdue=view.expired_asks(now=now),
            trail=view.trail(),
        )


class Refusal(msgspec.Struct, frozen=True):
    """What one controller said instead of a result."""

    kind: str
    sentence: str


class World:
    """One controller over each kind of store.

    Whatever is done is done to all of them, and all must say the same.
    """

    def __init__(self, database: str | None = None) -> None:
        self.now = NOON
        self.processes = FakeProcesses()
        self.rules = Rulebook()
        self.disk = Disk()
        self._steps = 0
        self._ids = Ids()
        self._home = mkdtemp(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)
        self._database = database
        self._memory = MemoryStore()
        self._real = self._opened()
        self.rows = rows_of(self._memory, now=self.now)

    def _opened(self) -> list[Store]:
        file = SqliteStore(f"{self._home}/.adjourn")
        return [file, PostgresStore(self._database)] if self._database else [file]

    def close(self) -> None:
        self._close_all()
        shutil.rmtree(self._home)

    def _close_all(self) -> None:
        for store in self._real:
            store.close()

    def reopen(self, *, later: int = 0) -> None:
        """Forget all that a process had in memory, and look again at another time."""
        self.now += later
        self._close_all()
        self._real = self._opened()
        self.rows = self._agreed_rows()

    def do(self, act: Callable[[Controller], Any]) -> Any:
        """Let all do it, and return what all said."""
        self._steps += 1
        said = self._said(act, self._memory)
        for store in self._real:
            assert self._said(act, store) == said, f"{type(store).__name__} disagrees"
        before, self.rows = self.rows, self._agreed_rows()
        if isinstance(said, Refusal):
            assert self.rows == before, f"refused, and changed something: {said}"
        return said

    def _said(self, act: Callable[[Controller], Any], store: Store) -> Any:
        self._ids.begin(self._steps)
        try:
            return act(self._controller(store))
        except AdjournError as error:
            return Refusal(type(error).__name__, error.sentence)

    def _controller(self, store: Store) -> Controller:
        return Controller(
            Context(
                store,
                clock=lambda: self.now,
                new_id=self._ids,
                find_runner=lambda _: CommandRunner(),
                open_processes=lambda: self.processes,
                open_gate=lambda: PolicyGate(self.rules, self.disk.look, lambda: self.now),
                **everybody(),
            )
        )

    def _agreed_rows(self) -> Rows:
        model = rows_of(self._memory, now=self.now)
        for store in self._real:
            real = rows_of(store, now=self.now)
            for field in Rows.__struct_fields__:
                assert getattr(real, field) == getattr(model, field), (
                    f"{type(store).__name__} disagrees on {field}"
                )
        return model

"""What may happen to machines that share a store, to their wires, and to the database.

Each as often as it is told to.
"""

import contextlib
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Timer

from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine
from tests.shared.network import Cable
from tests.shared.proxy import Wire

PAST_THE_LEASE = 1.7 * LEASE
_OURS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'adjourn%'"


class Remote(Machine):
    """A machine with a network of its own; its way to the database is a wire."""

    def __init__(self, place: Path, url: str, *, work: Path, cable: Cable, wire: Wire) -> None:
        super().__init__(place, url, work=work)
        # As with a pooler: what is said is never prepared, and can be cut at
        self.environment["ADJOURN_LISTEN"] = url
        self.cable = cable
        self.wire = wire

    def begin_worker(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a worker behind the cable."""
        program = [*self.cable.before(), "adjourn", "worker", "--max-active", "2", *words]
        with (self.place / f"worker-{len(self.workers)}.log").open("wb") as log:
            process = subprocess.Popen(
                program,
                cwd=self.place,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.workers.append(process)
        return process


class Trouble:
    """Makes trouble of a few kinds, by a seed."""

    def __init__(
        self, machines: list[Remote], wires: list[Wire], server: Server, *, seed: int
    ) -> None:
        self._machines = machines
        self._wires = wires
        self._server = server
        self._chance = random.Random(seed)
        self._timers: list[Timer] = []
        self._away: set[int] = set()  # workers that are stopped
        self._dead: list[Remote] = []  # machines whose worker does not come back for a while
        self.made: Counter[str] = Counter()

    def make(self, counts: dict[str, int], *, pause: float) -> None:
        """Make so much of each kind, in any order.

        What finds nothing to trouble is tried again later.
        """
        left = [kind for kind, count in counts.items() for _ in range(count)]
        self._chance.shuffle(left)
        while left:
            kind = left.pop()
            if getattr(self, kind)():
                self.made[kind] += 1
            else:
                left.insert(self._chance.randrange(len(left) + 1), kind)
            time.sleep(pause)
            self._fill_up()

    def _fill_up(self) -> None:
        """Start a worker again that could not go on, as an init system would."""
        for machine in self._machines:
            if machine not in self._dead and machine.workers[-1].poll() is not None:
                machine.begin_worker()

    def calm(self) -> None:
        """Let all go on, and none be missing."""
        for timer in self._timers:
            timer.join()
        for machine in self._machines:
            machine.cable.plug_in()
        self._fill_up()
        for wire in self._wires:
            wire.cut_at = None

    # --- each kind says whether it happened -------------------------------------------------------

    def worker_killed(self) -> bool:
        """Kill a worker; another follows at once, or when its leases are over."""
        machine = self._chance.choice(self._machines)
        worker = machine.workers[-1]
        if worker.poll() is not None or worker.pid in self._away:
            return False
        worker.kill()
        worker.wait(30)
        if self._chance.random() < 0.5:
            self._dead.append(machine)
            self._later(PAST_THE_LEASE, self._dead.remove, machine)
        return True

    def worker_stopped(self) -> bool:
        """Stop a worker until its leases are over."""
        worker = self._chance.choice(self._machines).workers[-1]
        if worker.poll() is not None or worker.pid in self._away:
            return False
        worker.send_signal(signal.SIGSTOP)
        self._away.add(worker.pid)
        self._later(PAST_THE_LEASE, self._let_go_on, worker)
        return True

    def _let_go_on(self, worker: "subprocess.Popen[bytes]") -> None:
        self._away.discard(worker.pid)
        with contextlib.suppress(ProcessLookupError):
            worker.send_signal(signal.SIGCONT)

    def cable_pulled(self) -> bool:
        """Part a machine from the database, past its leases; neither side is told."""
        machine = self._chance.choice(self._machines)
        machine.cable.pull()
        self._later(PAST_THE_LEASE, machine.cable.plug_in)
        return machine.cable.is_real

    def backend_killed(self) -> bool:
        """End one connection, whatever it is doing."""
        pids = [pid for (pid,) in self._server.do(f"{_OURS} ORDER BY pid")]
        if not pids:
            return False
        ((ended,),) = self._server.do(f"SELECT pg_terminate_backend({self._chance.choice(pids)})")
        return bool(ended)

    def server_killed(self) -> bool:
        """Have the whole server die at once, and start it again."""
        self._server.kill(self._chance.choice([signal.SIGQUIT, signal.SIGKILL]))
        time.sleep(self._chance.uniform(0, 1))
        self._server.start()
        return True

    def reply_lost(self) -> bool:
        """Cut the next connection of some machine that says COMMIT, once it is on its way."""
        wire = self._chance.choice(self._wires)
        before = wire.cuts
        wire.cut_at = b"COMMIT\0"
        deadline = time.monotonic() + 3
        while wire.cuts == before and time.monotonic() < deadline:
            time.sleep(0.02)
        wire.cut_at = None
        return wire.cuts > before

    def _later(self, seconds: float, act: Callable[..., object], *words: object) -> None:
        timer = Timer(seconds, act, words)
        timer.start()
        self._timers.append(timer)

"""Renews the leases of a supervisor in a thread, and hands each new deadline to its shims."""

import threading

from adjourn.core.errors import AdjournError
from adjourn.ports.leases import Leases
from adjourn.process import lease

_SAFETY = 0.9  # a shim has killed its tree before anybody else may take its run
_RENEWALS = 3  # in the length of a lease
_AGAIN = 1.0  # seconds after a renewal that failed


class LeaseRenewal:
    """Renews the leases of one supervisor; when it stops, the shims end their runs themselves."""

    def __init__(self, leases: Leases, *, supervisor: str) -> None:
        self._leases = leases
        self._supervisor = supervisor
        self.trouble: str | None = None
        self._places: dict[str, set[str]] = {}
        self._deadlines: dict[str, float] = {}
        self._turn = threading.Lock()
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_closed, name="leases", daemon=True)
        self._thread.start()

    def deadline(self) -> float:
        return lease.moment() + self._leases.length * _SAFETY

    @property
    def interval(self) -> float:
        return self._leases.length / _RENEWALS

    @property
    def has_runs(self) -> bool:
        return bool(self._places)

    def watch(self, run_id: str, place: str, *, deadline: float) -> None:
        """Hand a shim of a run this deadline, unless it has a later one, and all that follow."""
        with self._turn:
            self._places.setdefault(run_id, set()).add(place)
            lease.hand_over(place, self._latest(run_id, deadline))

    def _latest(self, run_id: str, deadline: float) -> float:
        """Return a run's latest deadline; answers that overtake each other bring none forward."""
        latest = self._deadlines[run_id] = max(deadline, self._deadlines.get(run_id, deadline))
        return latest

    def deadline_of(self, run_id: str) -> float:
        with self._turn:
            return self._deadlines.get(run_id, 0.0)

    def forget(self, run_id: str) -> None:
        with self._turn:
            self._places.pop(run_id, None)
            self._deadlines.pop(run_id, None)

    def close(self) -> None:
        self._stops.set()
        self._thread.join()

    def _renew_until_closed(self) -> None:
        pause = 0.0
        while not self._stops.wait(pause):
            pause = self.interval if self._renew() else _AGAIN
        try:
            self._leases.leave(self._supervisor)
        except AdjournError:
            return  # others find out when its lease is over
        finally:
            self._leases.close()

    def _renew(self) -> bool:
        deadline = self.deadline()  # before the request: the lease that it brings ends later
        with self._turn:
            runs = list(self._places)  # no others: what nobody here watches must not live on
        try:
            held = self._leases.beat(self._supervisor, runs)
        except AdjournError as error:
            self.trouble = error.sentence
            return False  # the deadlines stay what they are
        self.trouble = None
        with self._turn:
            for run_id, places in self._places.items():
                for place in places if run_id in held else ():
                    lease.hand_over(place, self._latest(run_id, deadline))
        return True

"""Leases: how machines that share a store know that a supervisor is alive."""

from collections.abc import Collection
from typing import Protocol


class Leases(Protocol):
    """Renews the leases of supervisors, on a connection of its own; any thread may use it."""

    @property
    def length(self) -> float:
        """How many seconds a lease lasts that is not renewed."""
        ...

    def beat(self, supervisor: str, runs: Collection[str]) -> set[str]:
        """Renew the leases of these runs of a supervisor, and return the runs that it still has."""
        ...

    def leave(self, supervisor: str) -> None:
        """Remove a supervisor from the list of the living."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class RunLeases(Protocol):
    """Renews the leases of one supervisor, and hands each new deadline to the shims of its runs."""

    def deadline(self) -> float:
        """Return the deadline of a lease taken now, in seconds since this machine started."""
        ...

    def watch(self, run_id: str, place: str, *, deadline: float) -> None:
        """Hand a shim of a run this deadline, and all later ones."""
        ...

    def deadline_of(self, run_id: str) -> float:
        """Return the last deadline that a run's shim was handed; one that has none is over."""
        ...

    def forget(self, run_id: str) -> None:
        """Stop renewing a run's lease."""
        ...

    @property
    def interval(self) -> float:
        """Seconds between two renewals; a check as often finds what a dead supervisor left."""
        ...

    @property
    def has_runs(self) -> bool:
        """Whether it renews the lease of any run."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the last renewal failed, if it did."""
        ...

    def close(self) -> None:
        """Stop renewing, and remove the supervisor from the list of the living."""
        ...

"""What tells that a supervisor is alive, where machines share the work."""

from collections.abc import Collection
from typing import Protocol


class Leases(Protocol):
    """Says that supervisors are alive, where machines share the work.

    On a connection of its own, for any thread.
    """

    @property
    def length(self) -> float:
        """How many seconds a lease lasts that is not renewed."""
        ...

    def beat(self, supervisor: str, runs: Collection[str]) -> set[str]:
        """Renew the leases of a supervisor's runs, of these and no others, and return those that it still has."""
        ...

    def leave(self, supervisor: str) -> None:
        """Say that a supervisor is gone."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Heart(Protocol):
    """Keeps the leases of one supervisor, and hands each new deadline to the shims of its runs."""

    def deadline(self) -> float:
        """Return the deadline of a lease that is taken from now on, in seconds since this machine started."""
        ...

    def watch(self, run_id: str, place: str, *, deadline: float) -> None:
        """Hand a shim of a run this deadline, and all later ones."""
        ...

    def deadline_of(self, run_id: str) -> float:
        """Return the last deadline that a run's shim was handed; one that has none is over."""
        ...

    def forget(self, run_id: str) -> None:
        """Let a run's lease be."""
        ...

    @property
    def interval(self) -> float:
        """How many seconds pass between two words.

        Whoever looks as often finds what a dead one left before its lease is over.
        """
        ...

    @property
    def has_runs(self) -> bool:
        """Whether there are runs of which it is not told yet how they ended."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the last word did not get through, if it did not."""
        ...

    def close(self) -> None:
        """Stop, and say so to all."""
        ...

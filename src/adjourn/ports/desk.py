"""What is needed to take a decision, beside the store."""

from collections.abc import Callable
from typing import Protocol

from adjourn.core.ask import Principal
from adjourn.core.authority import Rights
from adjourn.core.call import Command
from adjourn.core.surroundings import Surroundings
from adjourn.core.task import Milliseconds
from adjourn.ports.store import Change, View

Clock = Callable[[], Milliseconds]
NewId = Callable[[], str]
Look = Callable[[Command], Surroundings]  # a command in; what it depends on, as it is now, out


class Supervisors(Protocol):
    """Knows which supervisors live."""

    def supervisor_lives(self, supervisor: str) -> bool:
        """Say whether that supervisor still holds its lock."""
        ...


class Authoriser(Protocol):
    """Knows who speaks through a channel, and who has which scopes; whom it does not know has none."""

    def caller(self) -> str:
        """Return the name of whoever is at the other end, as the channel says."""
        ...

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do; to raise is to deny."""
        ...

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Raise NotAllowed unless the caller is certainly outside of every run of the store; to raise is to deny."""
        ...

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember where the caller is, unless a run of the store is alive."""
        ...

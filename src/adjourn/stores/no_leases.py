"""What a store of one machine says of leases: nothing.

There a supervisor is alive while it holds its lock.
"""

from collections.abc import Callable, Sequence

from adjourn.core.task import Run, Task
from adjourn.ports.store import View


class NoLeases:
    """Writers come one after the other, and the dead stay dead.

    Nothing has to be held, fenced or taken away.
    """

    def abandoned(self) -> list[Run]:
        return []

    def hold(self, run: Run) -> None:
        """Let the run's supervisor have its task."""

    def fence(self, run: Run) -> None:
        """Find that the run's supervisor has its task."""

    def wrest(self, run: Run, *, only_if_over: bool) -> None:
        """Take the task from a supervisor that is dead."""

    def foresee(self, task_id: str) -> None:
        """Read nothing ahead: all of it is near."""

    def hold_asks(self, ask_ids: Sequence[str]) -> None:
        """Have all of them: nobody else writes meanwhile."""


def oldest_fitting(view: View, pool: str, fits: Callable[[Task], bool]) -> Task | None:
    """Return the oldest task of a pool that can be started and that fits.

    Most often it is the first.
    """
    limit = 1
    while len(page := view.queued(pool=pool, limit=limit)) == limit and not any(map(fits, page)):
        limit *= 16
    return next(filter(fits, page), None)

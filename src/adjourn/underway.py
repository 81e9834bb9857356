"""What a supervisor holds of the runs that are under way, and of the calls that run beside agents."""

import select
from functools import cached_property

from adjourn.core.call import Call
from adjourn.core.task import Run
from adjourn.process.shim import Shim

FIRST_PAUSE = 0.25  # seconds; it doubles before it is used


class UnderWay:
    """A shim that runs something, and how often it was told to stop."""

    def __init__(self, shim: Shim, *, place: str) -> None:
        self.place = place
        self._shim = shim
        self.told = 0

    def fileno(self) -> int:
        """Return what to poll for its end."""
        return self._shim.fileno()

    @property
    def is_gone(self) -> bool:
        """Whether the shim has left."""
        return self._shim.wait(0)

    @cached_property
    def stayed_out(self) -> bool:
        """Whether the shim died with its gate open and never went through; it can be seen once, before we let go."""
        return self._shim.stayed_out()

    def heed(self, wanted: int) -> None:
        """Forward one interrupt for the first request to stop, and kill at the second."""
        if wanted and not self.told:
            self._shim.interrupt()
        if wanted > 1 and self.told <= 1:
            self._shim.kill()
        self.told = max(self.told, min(wanted, 2))

    def leave(self) -> None:
        """Let go of the shim."""
        self.stayed_out  # noqa: B018 -- it is kept once it was seen
        self._shim.close()


class Execution(UnderWay):
    """A call of an agent that runs beside it."""

    def __init__(self, call: Call, shim: Shim, *, place: str) -> None:
        super().__init__(shim, place=place)
        self.call = call


class Active(UnderWay):
    """A run under way, and the call that runs beside its process, if one does."""

    def __init__(self, run: Run, shim: Shim, *, place: str, is_driven: bool) -> None:
        super().__init__(shim, place=place)
        self.run = run
        self.is_driven = is_driven
        self.execution: Execution | None = None
        # A call beside it that could not be started is tried again at `retry_at`, and later each time.
        self.retry_at, self.retry_pause = 0.0, FIRST_PAUSE
        self.failed_starts = 0
        self.shortages: set[str] = set()  # why no call could be started since the last that ran
        self.is_in_doubt = False  # whether the store failed while a call beside it was to begin
        self._has_left = False
        self._poll = select.epoll() if is_driven else None
        if self._poll:
            self._poll.register(shim.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return what to poll: readable when the run's process has left, or a call that runs beside it."""
        return self._poll.fileno() if self._poll else super().fileno()

    def begin(self, execution: Execution) -> None:
        """Have a call run beside the process."""
        self.execution = execution
        if self._poll:
            self._poll.register(execution.fileno(), select.EPOLLIN)

    def end(self, execution: Execution) -> None:
        """Let go of the call that has run."""
        self.execution = None
        if self._poll:
            self._poll.unregister(execution.fileno())
        execution.leave()

    def heed(self, wanted: int) -> None:
        """Tell the process and what runs beside it to stop."""
        super().heed(wanted)
        if self.execution:
            self.execution.heed(wanted)

    def has_left(self) -> bool:
        """Say whether the process has left; from then on only what runs beside it is watched."""
        if self._poll and not self._has_left and self.is_gone:
            self._poll.unregister(self._shim.fileno())
            self._has_left = True
        return self._has_left if self._poll else self.is_gone

    def leave(self) -> None:
        """Let go of the shims."""
        if self.execution:
            self.execution.leave()
        if self._poll:
            self._poll.close()
        super().leave()

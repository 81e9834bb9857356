"""How the agent stops when it is told to.

After the step, or at once where nothing is lost by that.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """Told to stop while waiting for somebody else."""


class Stop:
    """Remembers that somebody wants the agent to stop."""

    def __init__(self) -> None:
        self.wanted = False
        self._may_break_off = False

    def heed(self) -> None:
        """Stop when an interrupt comes, instead of dying of it."""
        signal.signal(signal.SIGINT, self._told)

    def _told(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True
        if self._may_break_off:
            raise Interrupted

    @contextmanager
    def at_once(self) -> Generator[None, None, None]:
        """Let an interrupt break off what is only waited for.

        An answer of the model, the end of a tool.
        """
        self._may_break_off = True
        try:
            if self.wanted:
                raise Interrupted
            yield
        finally:
            self._may_break_off = False

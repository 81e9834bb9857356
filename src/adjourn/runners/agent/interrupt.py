"""How the agent stops when it is told to.

After the step, or at once where nothing is lost by that.
"""

from collections.abc import Generator
from contextlib import contextmanager


class WasInterrupted(BaseException):
    """Told to stop while waiting for somebody else."""


class Stop:
    """Remembers that somebody wants the agent to stop."""

    def __init__(self) -> None:
        self.wanted = False
        self._may_break_off = False

    def request(self) -> None:
        """Ask the agent to stop; in a signal handler, this breaks off what is only waited for."""
        self.wanted = True
        if self._may_break_off:
            raise WasInterrupted

    @contextmanager
    def at_once(self) -> Generator[None, None, None]:
        """Let an interrupt break off what is only waited for.

        An answer of the model, the end of a tool.
        """
        self._may_break_off = True
        try:
            if self.wanted:
                raise WasInterrupted
            yield
        finally:
            self._may_break_off = False

"""Asks the model until it answers.

What may pass is tried again, as long as it takes and no longer than is sensible.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from adjourn.core.agent.transcript import Assistant, Message
from adjourn.core.backoff import backoff
from adjourn.core.errors import AdjournError
from adjourn.runners.agent.options import Setup
from adjourn.runners.agent.tools.tool import Tool

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_LONGEST_ASKED = 600.0  # a server that wants to be left alone for longer is one for another day

Sleep = Callable[[float], None]
Tell = Callable[[str], None]


class ModelStumbled(Exception):
    """The model did not answer this time; it may the next."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelGaveUp(AdjournError):
    """The model will not answer as things are."""

    code = "model"


class Line(Protocol):
    """A line to one model."""

    def request(
        self, instructions: str, messages: Sequence[Message], tools: Sequence[Tool], hear: Tell
    ) -> Assistant:
        """Return the model's answer, or raise ModelStumbled or ModelGaveUp."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class Asking:
    """Asks one model, with patience."""

    def __init__(
        self, setup: Setup, instructions: str, *, hear: Tell, tell: Tell, sleep: Sleep = time.sleep
    ) -> None:
        self._setup = setup
        self._instructions = instructions
        self._hear = hear
        self._tell = tell
        self._sleep = sleep
        self._line: Line | None = None

    def close(self) -> None:
        """Hang up."""
        if self._line:
            self._line.close()

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Assistant:
        """Return the model's answer, or raise ModelGaveUp."""
        for attempt in range(1, self._setup.tries + 1):
            try:
                answer = self._open().request(self._instructions, messages, tools, self._hear)
            except ModelStumbled as error:
                if attempt == self._setup.tries:
                    raise ModelGaveUp(f"{error} (tried {attempt} times)") from error
                self._wait(error, attempt)
            else:
                if answer.text and not answer.text.endswith("\n"):
                    self._hear("\n")  # what comes next begins on a line of its own
                return answer
        raise ModelGaveUp("the model was not asked: it may be tried 0 times")

    def _open(self) -> Line:
        if self._line is None:
            try:
                # Takes a second, so only when a model is asked
                from adjourn.runners.agent import model
            except ModuleNotFoundError as error:
                raise ModelGaveUp(
                    f"the agent needs what is not installed: {error.name}; pip install 'adjourn[agent]'"
                ) from error
            self._line = model.Line(self._setup)
        return self._line

    def _wait(self, error: ModelStumbled, attempt: int) -> None:
        wanted = error.retry_after or 0.0
        if wanted > _LONGEST_ASKED:
            raise ModelGaveUp(f"{error}; it wants to be asked again in {wanted:.0f} s") from error
        pause = max(wanted, backoff(attempt, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
        self._tell(f"{error}; asking again in {pause:.0f} s")
        self._sleep(pause)

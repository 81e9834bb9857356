"""Asks the model until it answers, and retries what may pass."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from adjourn.core.agent.transcript import Assistant, Message, User
from adjourn.core.backoff import backoff
from adjourn.runners.agent.model_errors import ModelGaveUp, ModelRefused, ModelStumbled
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.tool import Tool

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_LONGEST_ASKED = 600.0  # a server that wants to be left alone for longer is one for another day

_SUMMARISE = (
    "The text is the beginning of your own work for a person, which has become too long. "
    "Summarise it for yourself, so that you can go on with the work without it: what was asked, "
    "what was done and with which result, what was decided or rejected, which files and names "
    "matter, and what is left to do."
)

Sleep = Callable[[float], None]
Tell = Callable[[str], None]


class ModelClient(Protocol):
    """Sends requests to one model."""

    def request(
        self, instructions: str, messages: Sequence[Message], tools: Sequence[Tool], hear: Tell
    ) -> Assistant:
        """Return the model's answer, or raise ModelStumbled or ModelRefused."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class RetryingModel:
    """Asks one model, and retries what may pass."""

    def __init__(
        self,
        setup: AgentSetup,
        instructions: str,
        *,
        hear: Tell,
        tell: Tell,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._setup = setup
        self._instructions = instructions
        self._hear = hear
        self._tell = tell
        self._sleep = sleep
        self._client: ModelClient | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._client:
            self._client.close()

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Assistant:
        """Return the model's answer, or raise ModelGaveUp."""
        answer = self._ask(self._instructions, messages, tools, hear=self._hear)
        if answer.text and not answer.text.endswith("\n"):
            self._hear("\n")  # what comes next begins on a line of its own
        return answer

    def summarise(self, text: str) -> Assistant:
        """Return the model's summary of a conversation, which nobody hears, or raise."""
        return self._ask(_SUMMARISE, [User(text=text)], (), hear=lambda _: None)

    def _ask(
        self, instructions: str, messages: Sequence[Message], tools: Sequence[Tool], *, hear: Tell
    ) -> Assistant:
        tries = self._setup.tries
        for attempt in range(1, tries + 1):
            try:
                return self._open().request(instructions, messages, tools, hear)
            except ModelStumbled as error:
                wanted = error.retry_after or 0.0
                if attempt == tries:
                    raise ModelGaveUp(f"{error} (tried {attempt} times)") from error
                if wanted > _LONGEST_ASKED:
                    why = f"{error}; it wants to be asked again in {wanted:.0f} s"
                    raise ModelGaveUp(why) from error
                pause = max(wanted, backoff(attempt, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
                self._tell(f"{error}; asking again in {pause:.0f} s")
                self._sleep(pause)
        raise ModelGaveUp("the model was not asked: it may be tried 0 times")

    def _open(self) -> ModelClient:
        if self._client is None:
            try:
                # An optional package, which takes a second to import
                from adjourn.runners.agent import model
            except ModuleNotFoundError as error:
                why = f"the agent needs what is not installed: {error.name}"
                raise ModelRefused(f"{why}; pip install 'adjourn[agent]'") from error
            self._client = model.Client(self._setup)
        return self._client

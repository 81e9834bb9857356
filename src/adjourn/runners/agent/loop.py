"""The agent's loop: query, policy, act or pause.

What to do next follows from the last message that the store has, and from nothing else. So a
process that died anywhere is simply followed by another that looks at the same message.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Protocol

from adjourn.core import exits
from adjourn.core.agent.calls import Report
from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    Summary,
    ToolResult,
    User,
    with_unique_ids,
)
from adjourn.core.ask import Question, QuestionAsk
from adjourn.core.call import canonical
from adjourn.core.errors import AdjournError
from adjourn.ports.drive import Drive
from adjourn.runners.agent.calls import Batch
from adjourn.runners.agent.conversation import AgentConversation
from adjourn.runners.agent.interrupt import Stop, WasInterrupted
from adjourn.runners.agent.model_errors import ContextFull, LimitReached
from adjourn.runners.agent.options import AgentSetup, OnText
from adjourn.runners.agent.tools.tool import Tool
from adjourn.runners.agent.tools.toolbox import Toolbox
from adjourn.runners.driver import INTERRUPTED

_SAME_FAILURES = 5  # in a row, before a person is asked whether that shall go on

_LONGEST_TEXTS = (20_000, 2_000, 200)  # characters of a message, as a summary is made of it


class Model(Protocol):
    """Answers a conversation, and summarises one."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Assistant:
        """Return the model's answer."""
        ...

    def summarise(self, text: str) -> Assistant:
        """Return a summary of a conversation."""
        ...


class Agent:
    """Goes on with one conversation until it is done, or a person is needed."""

    def __init__(
        self, drive: Drive, setup: AgentSetup, toolbox: Toolbox, model: Model, stop: Stop
    ) -> None:
        self._drive = drive
        self._setup = setup
        self._toolbox = toolbox
        self._model = model
        self._stop = stop
        self._conversation = AgentConversation(drive)
        self._pauses_on_text = drive.task.spec.pause_on_approval and setup.on_text is OnText.PAUSE

    def run(self) -> int:
        """Take steps until one of them ends the run, and return its exit code."""
        conversation = self._conversation
        if not self._is_answered():
            conversation.hear(self._drive.feedback)
        code: int | None = None
        try:
            while code is None:
                code = self._step()
                if code is None and self._stop.wanted:
                    code = INTERRUPTED
        except LimitReached as error:
            self._report(error.why, resume_with=error.options)
            raise
        except AdjournError as error:
            self._report(error.why)
            raise
        except WasInterrupted:
            self._report(conversation.words)
            raise
        is_done = code == exits.COMPLETED
        self._report(conversation.final_words if is_done else conversation.words)
        return code

    @property
    def has_answers(self) -> bool:
        """Whether the model has answered before, so that there is work to lose."""
        return self._conversation.tally.steps > 0

    @property
    def farewell(self) -> str | None:
        """What the model says of its work that is done."""
        return self._conversation.farewell

    def _step(self) -> int | None:
        match self._conversation.last:
            case None:
                self._conversation.append(User(text=self._drive.task.spec.prompt or ""))
            case Assistant(tool_calls=()) as answer:
                return self._listen(answer)
            case Assistant() as answer:
                return self._act(answer)
            case ToolResult() if self._conversation.is_finished:
                return exits.COMPLETED
            case User() | ToolResult() | Summary():
                self._ask_the_model()
        return None

    def _ask_the_model(self) -> None:
        """Have the model answer, and keep the answer before anything acts on it."""
        self._conversation.hear(self._drive.feedback)
        self._require_room()
        with self._stop.at_once():
            try:
                answer = self._model(self._conversation.for_model, self._toolbox.tools)
            except ContextFull:
                self._compact()
                return  # the next step asks again
        self._drive.note_step(self._conversation.tally.steps + 1)
        self._conversation.append(with_unique_ids(answer, self._conversation.tally.names))

    def _compact(self) -> None:
        """Have the model summarise the older part of a conversation that is too long for it."""
        older = self._conversation.older_part()
        if not self._setup.compact or older is None:
            why = "there is nothing older to summarise" if self._setup.compact else "compact is off"
            raise LimitReached(f"the conversation is longer than the model takes, and {why}")
        covers, messages = older
        # The older part alone may be too long as well: then of each message only the beginning
        for most in _LONGEST_TEXTS:
            with suppress(ContextFull):
                summary = self._model.summarise("\n\n".join(_as_text(messages, most=most)))
                kept = Summary(
                    text=summary.text, covers=covers, usage=summary.usage, model=summary.model
                )
                self._conversation.append(kept)
                return
        raise LimitReached("the conversation is longer than the model takes, also to summarise it")

    def _require_room(self) -> None:
        """Stop at a limit. Steps and failures count since the last resume, all else in all."""
        conversation, setup = self._conversation, self._setup
        used = conversation.tally.usage
        tokens = used.input + used.output
        if conversation.steps_of_run >= setup.max_steps:
            why = f"it took {conversation.steps_of_run} steps, and --max-steps allows no more"
            raise LimitReached(f"{why} without a person")
        if conversation.failures.most >= _SAME_FAILURES:
            raise LimitReached(f"the same call failed {_SAME_FAILURES} times in a row")
        if setup.max_tokens is not None and tokens >= setup.max_tokens:
            more = str(max(2 * setup.max_tokens, tokens + setup.max_tokens))
            why = f"it used {tokens} tokens, and it may use {setup.max_tokens}"
            raise LimitReached(why, "--max-tokens", more)
        if setup.max_cost is not None and conversation.tally.steps:
            if used.cost is None:
                why = "what the model costs is not known, so --max-cost cannot be kept"
                raise LimitReached(why, "--max-cost", "none")
            if Decimal(used.cost) >= Decimal(str(setup.max_cost)):
                more = f"{float(used.cost) + setup.max_cost:g}"
                why = f"it cost ${used.cost}, and it may cost ${setup.max_cost:g}"
                raise LimitReached(why, "--max-cost", more)

    def _listen(self, answer: Assistant) -> int | None:
        """Take words without a call for a question, or for the end."""
        if not self._pauses_on_text:
            return exits.COMPLETED
        asked = self._drive.ask(Question(prompt=answer.text, key=self._conversation.input_key))
        if asked.is_open:
            return exits.PAUSED
        self._conversation.append(User(text=asked.reply or ""))
        return None

    def _is_answered(self) -> bool:
        """Return whether a person has answered the model's last words: that is said first."""
        last = self._conversation.last
        if not self._pauses_on_text or not isinstance(last, Assistant) or last.tool_calls:
            return False
        key, number = self._conversation.input_key, self._drive.run.resumed_from
        return any(
            isinstance(ask, QuestionAsk) and (ask.key, ask.run) == (key, number) and ask.answer
            for ask in self._drive.asks()
        )

    def _act(self, answer: Assistant) -> int | None:
        """Have all calls of an answer judged and carried out, or leave for a person to decide."""
        batch = Batch(self._drive, self._toolbox, answer)
        if batch.needs_only_answers:
            with self._stop.at_once():
                batch.linger(self._conversation.checkpoint(self._drive.task))
        if batch.needs_a_person:
            return exits.PAUSED
        with self._stop.at_once():
            batch.carry_out()
        if batch.needs_a_person:
            return exits.PAUSED  # what was let through is not what it was, or nobody saw it end
        self._conversation.conclude(batch.results())
        return None

    def _report(self, message: str, *, resume_with: tuple[str, ...] = ()) -> None:
        spent = self._conversation.usage_of_run
        self._drive.report(
            Report(
                message=message,
                steps=self._conversation.tally.steps,
                input_tokens=spent.input,
                cached_input_tokens=spent.cached,
                output_tokens=spent.output,
                cost=spent.cost,
                resume_with=resume_with,
                task=self._conversation.usage_of_task,
            )
        )


def _as_text(messages: Sequence[Message], *, most: int) -> Iterator[str]:
    """Yield messages as a text that a model can summarise."""
    for message in messages:
        match message:
            case User():
                yield f"Person: {message.text[:most]}"
            case Assistant():
                calls = [
                    f"{call.name} {canonical(call.arguments).decode()[:most]}"
                    for call in message.tool_calls
                ]
                yield "\n".join([f"You: {message.text[:most]}", *calls])
            case ToolResult():
                yield f"Result of {message.name}: {message.text[:most]}"
            case Summary():
                pass

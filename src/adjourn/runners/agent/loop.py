"""The agent's loop: query, policy, act or pause.

What to do next follows from the last message that the store has, and from nothing else. So a
process that died anywhere is simply followed by another that looks at the same message.
"""

from collections.abc import Callable, Sequence

from adjourn.core import exits
from adjourn.core.agent.calls import Report
from adjourn.core.agent.transcript import Assistant, Message, ToolResult, User, with_unique_ids
from adjourn.core.ask import Question
from adjourn.core.errors import AdjournError
from adjourn.ports.drive import Drive
from adjourn.runners.agent.calls import Batch
from adjourn.runners.agent.conversation import Conversation
from adjourn.runners.agent.interrupt import Interrupted, Stop
from adjourn.runners.agent.model_errors import ModelGaveUp
from adjourn.runners.agent.options import OnText, Setup
from adjourn.runners.agent.tools.tool import Tool
from adjourn.runners.agent.tools.toolbox import Toolbox
from adjourn.runners.driver import INTERRUPTED

Query = Callable[[Sequence[Message], Sequence[Tool]], Assistant]


class Agent:
    """Goes on with one conversation until it is done, or a person is needed."""

    def __init__(
        self, drive: Drive, setup: Setup, toolbox: Toolbox, query: Query, stop: Stop
    ) -> None:
        self._drive = drive
        self._setup = setup
        self._toolbox = toolbox
        self._query = query
        self._stop = stop
        self._conversation = Conversation(drive)
        self._pauses_on_text = drive.task.spec.pause_on_approval and setup.on_text is OnText.PAUSE

    def run(self) -> int:
        """Take steps until one of them ends the run, and return its exit code."""
        conversation = self._conversation
        conversation.hear(self._drive.feedback)
        code: int | None = None
        try:
            while code is None:
                code = self._step()
                if code is None and self._stop.wanted:
                    code = INTERRUPTED
        except AdjournError as error:
            self._report(error.why)
            raise
        except Interrupted:
            self._report(conversation.words)
            raise
        is_done = code == exits.COMPLETED
        self._report(conversation.final_words if is_done else conversation.words)
        return code

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
            case User() | ToolResult():
                self._ask_the_model()
        return None

    def _ask_the_model(self) -> None:
        """Have the model answer, and keep the answer before anything acts on it."""
        steps, used = self._conversation.tally.steps, self._conversation.tally.usage
        tokens, most = used.input + used.output, self._setup.max_tokens
        if steps >= self._setup.max_steps:
            raise ModelGaveUp(f"it took {steps} steps, and --max-steps allows no more")
        if most is not None and tokens >= most:
            raise ModelGaveUp(f"it used {tokens} tokens, and it may use {most}")
        with self._stop.at_once():
            answer = self._query(self._conversation.messages, self._toolbox.tools)
        self._conversation.append(with_unique_ids(answer, self._conversation.tally.names))

    def _listen(self, answer: Assistant) -> int | None:
        """Take words without a call for a question, or for the end."""
        if not self._pauses_on_text:
            return exits.COMPLETED
        asked = self._drive.ask(Question(prompt=answer.text, key=self._conversation.input_key))
        if asked.is_open:
            return exits.PAUSED
        self._conversation.append(User(text=asked.reply or ""))
        return None

    def _act(self, answer: Assistant) -> int | None:
        """Have all calls of an answer judged and carried out, or leave for a person to decide."""
        batch = Batch(self._drive, self._toolbox, answer)
        if batch.needs_a_person:
            return exits.PAUSED
        with self._stop.at_once():
            batch.carry_out()
        if batch.needs_a_person:
            return exits.PAUSED  # what was let through is not what it was, or nobody saw it end
        self._conversation.conclude(batch.results())
        return None

    def _report(self, message: str) -> None:
        spent = self._conversation.usage_of_run
        self._drive.report(
            Report(
                message=message,
                steps=self._conversation.tally.steps,
                input_tokens=spent.input,
                output_tokens=spent.output,
                cost=spent.cost,
                task=self._conversation.usage_of_task,
            )
        )

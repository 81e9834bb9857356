"""The transcript of a task as the loop sees it: read once, then only appended to."""

from collections.abc import Sequence
from itertools import takewhile

from adjourn.core.agent.calls import Spent
from adjourn.core.agent.transcript import (
    Assistant,
    Failures,
    Message,
    Summary,
    Tally,
    ToolCall,
    ToolResult,
    Usage,
    User,
    decoded,
    encoded,
)
from adjourn.core.clarification import Checkpoint, Context, Metadata, WorkState
from adjourn.core.kept_documents import BEGAN
from adjourn.core.review import WANTS_CHANGES
from adjourn.core.task import Task
from adjourn.ports.drive import Drive
from adjourn.runners.agent.tools.toolbox import ASK, FINISH


class AgentConversation:
    """All messages so far; what is added is kept in the store first."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._before = int(drive.document(BEGAN.name) or 0)
        self.messages: list[Message] = [
            decoded(body) for body in drive.messages(after=self._before)
        ]
        self.tally = Tally(self.messages)
        summaries = [each for each in self.messages if isinstance(each, Summary)]
        self._summary = summaries[-1] if summaries else None
        self._beginning: User | None = None  # what the model gets for what the summary covers
        self._of_run = Tally()
        self.failures = Failures()  # since the last resume, as the steps

    @property
    def last(self) -> Message | None:
        """The message that says what comes next."""
        rest = (each for each in reversed(self.messages) if not isinstance(each, Summary))
        return next(rest, None)

    @property
    def for_model(self) -> list[Message]:
        """The messages as the model gets them: the newest summary instead of what it covers."""
        if self._summary is None:
            return self.messages
        if self._beginning is None:
            first = next(each.text for each in self.messages if isinstance(each, User))
            said = f"{first}\n\nWhat happened so far, in your own words:\n{self._summary.text}"
            self._beginning = User(text=said)
        return [self._beginning, *self.messages[self._summary.covers :]]

    def older_part(self) -> tuple[int, list[Message]] | None:
        """Return how many messages a new summary covers, and what of them it is made from.

        About a third of the conversation stays as it is. A call is never cut off from its result.
        None: nothing is left that could be summarised.
        """
        covered = self._summary.covers if self._summary else 1
        sizes = [len(encoded(each)) for each in self.messages]
        starts = [
            number
            for number, each in enumerate(self.messages)
            if isinstance(each, Assistant) and number > covered
        ]
        if not starts:
            return None
        small = (start for start in starts if sum(sizes[start:]) <= sum(sizes) // 3)
        cut = next(small, starts[-1])
        return cut, self.for_model[: len(self.for_model) - (len(self.messages) - cut)]

    def append(self, *messages: Message) -> None:
        """Keep messages, all in one moment."""
        self._drive.append(
            [encoded(message) for message in messages], after=self._before + len(self.messages)
        )
        self._take(messages)

    def conclude(self, results: Sequence[ToolResult]) -> None:
        """Keep what came of a batch, and be done with the batch."""
        self._drive.conclude(
            [encoded(result) for result in results], after=self._before + len(self.messages)
        )
        self._take(results)

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Summary):
                self._summary, self._beginning = message, None
            self.messages.append(message)
            self.tally.add(message)
            self._of_run.add(message)
            self.failures.add(message)

    def hear(self, feedback: Sequence[str]) -> None:
        """Add what people said after the agent had left, unless the model knows it already.

        Each once, and never between calls and their results.
        """
        if self.last is None or (isinstance(self.last, Assistant) and self.last.tool_calls):
            return
        told = sum(
            isinstance(message, User)
            and (message.follow_up or message.text.startswith(WANTS_CHANGES))
            for message in self.messages
        )
        for words in feedback[told:]:
            self.append(User(text=words, follow_up=True))

    @property
    def steps_of_run(self) -> int:
        """How many answers the model gave since the last resume."""
        return self._of_run.steps

    @property
    def usage_of_run(self) -> Usage:
        """What the answers of this run used."""
        return self._of_run.usage

    @property
    def usage_of_task(self) -> Spent | None:
        """What all answers used, also those of runs that died.

        None where a restart put some of them out of sight.
        """
        used = self.tally.usage
        return (
            None
            if self._before
            else Spent(
                input_tokens=used.input,
                cached_input_tokens=used.cached,
                output_tokens=used.output,
                cost=used.cost,
            )
        )

    @property
    def answer(self) -> Assistant | None:
        """The newest answer of the model."""
        return next(
            (message for message in reversed(self.messages) if isinstance(message, Assistant)), None
        )

    @property
    def words(self) -> str:
        """What the model said last."""
        return self.answer.text if self.answer else ""

    @property
    def input_key(self) -> str:
        """The key of the question that words without a call are: each has one of its own."""
        return "input" if self.tally.questions == 1 else f"input-{self.tally.questions}"

    def checkpoint(self, task: Task) -> Checkpoint:
        """Return what the model has done so far, and the questions at which it waits."""
        done = {
            message.tool_call_id
            for message in self.messages
            if isinstance(message, ToolResult) and not message.failed
        }
        calls = [
            call
            for message in self.messages
            if isinstance(message, Assistant)
            for call in message.tool_calls
        ]
        made = [(call, _path(call)) for call in calls if call.id in done]
        used = self.tally.usage
        return Checkpoint(
            agent_id=task.id,
            work_state=WorkState(
                completed=[f"{call.name} {path}".rstrip() for call, path in made],
                in_progress=[task.spec.prompt or ""],
                blocked=[
                    str(call.arguments.get("question", ""))
                    for call in calls
                    if call.name == ASK.name
                    and call.id not in done
                    and isinstance(call.arguments, dict)
                ],
            ),
            context=Context(
                session_context={"session": task.session_id, "messages": len(self.messages)},
                files_created=[path for call, path in made if call.name == "write_file" and path],
                files_modified=[path for call, path in made if call.name == "edit_file" and path],
            ),
            metadata=Metadata(tokens_burned=used.input + used.output),
        )

    @property
    def is_finished(self) -> bool:
        """Whether the model said that its work is done."""
        return self.farewell is not None

    @property
    def final_words(self) -> str:
        """What the model has to say at the end."""
        return self.farewell or self.words

    @property
    def farewell(self) -> str | None:
        """The words of a finish call that counted, if the newest answer has one."""
        since = takewhile(
            lambda message: not isinstance(message, Assistant), reversed(self.messages)
        )
        done = {
            message.tool_call_id
            for message in since
            if isinstance(message, ToolResult) and not message.failed
        }
        calls = self.answer.tool_calls if self.answer else ()
        finishes = [
            call.arguments for call in calls if call.name == FINISH.name and call.id in done
        ]
        return next(
            (str(given.get("message", "")) for given in finishes if isinstance(given, dict)), None
        )


def _path(call: ToolCall) -> str:
    """Return the file that a call names, if it names one."""
    path = call.arguments.get("path") if isinstance(call.arguments, dict) else None
    return path if isinstance(path, str) else ""

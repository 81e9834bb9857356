"""What a driver may do for the agent that it runs: ask, have calls run, and keep what came of it.

It never decides.
"""

from collections.abc import Sequence
from typing import Protocol

from adjourn.core.agent.calls import CallResult, Held, Proposed, Report
from adjourn.core.ask import Ask, Question, QuestionAsk
from adjourn.core.call import Call
from adjourn.core.clarification import Checkpoint
from adjourn.core.task import Run, Task


class Drive(Protocol):
    """A run from the inside, for a driver."""

    task: Task
    run: Run
    place: str  # a private directory of the run
    # What people said to the agent after earlier runs of the session, the newest last: what
    # reviewers want changed, and the texts of resumes
    feedback: Sequence[str]

    @property
    def directories(self) -> Sequence[str]:
        """Where the agent may read and write beside its workspace, by the policy."""
        ...

    def propose(self, batch: Sequence[Proposed]) -> list[Held]:
        """Record all calls of one answer before any of them acts; return how each stands."""
        ...

    def batch(self) -> list[Held]:
        """Return the newest batch as it stands: empty once it was forgotten."""
        ...

    def held(self, tool_call_id: str, /) -> Held | None:
        """Return a call of the task by its name, as it stands, whichever batch it was in."""
        ...

    def lets_run(self, proposed: Proposed) -> bool:
        """Return whether a call would run without anybody being asked; nothing is recorded."""
        ...

    def wait_for_calls(self) -> list[Held]:
        """Wait until no call of the batch can run without a person; return how each stands."""
        ...

    def hand_out(self, call: Call) -> Call | None:
        """Let the agent make an approved call, once, with the bytes of what is returned.

        None: a person is asked again.
        """
        ...

    def close(self, call: Call, result: CallResult) -> None:
        """Record how a call ended that was handed out."""
        ...

    def ask(self, question: Question) -> QuestionAsk:
        """Register a question, or find it again with its answer."""
        ...

    def clarify(self, questions: Sequence[Question]) -> list[QuestionAsk]:
        """Register questions that are asked together, or find them again with their answers."""
        ...

    def linger(self, asks: Sequence[QuestionAsk], checkpoint: Checkpoint) -> list[QuestionAsk]:
        """Wait briefly for answers to what `clarify` returned; return the asks as they are then.

        Meanwhile there is a request file. Without answers the checkpoint is written beside it.
        """
        ...

    def asks(self) -> list[Ask]:
        """Return all asks of the task, oldest first."""
        ...

    def append(self, messages: Sequence[bytes], *, after: int) -> None:
        """Add to the transcript, which has so many messages; none is ever changed."""
        ...

    def conclude(self, results: Sequence[bytes], *, after: int) -> None:
        """Add what came of a batch to the transcript and be done with the batch, in one moment."""
        ...

    def messages(self, *, after: int = 0) -> list[bytes]:
        """Return the transcript, oldest first, or so much of it after the n-th message."""
        ...

    def keep(self, name: str, body: bytes | None) -> None:
        """Keep a document of the task in the place of what was there; None keeps nothing."""
        ...

    def document(self, name: str) -> bytes | None:
        """Return what the task keeps under that name, if anything."""
        ...

    def session(self, ref: str, *, resumable: bool) -> None:
        """Record the provider's name of its session, and whether it could be resumed right now."""
        ...

    def note_step(self, number: int) -> None:
        """Report that the model has answered for the n-th time."""
        ...

    def report(self, report: Report) -> None:
        """Record what the run has done so far; the last report counts."""
        ...

"""A task with what belongs to it, as of one moment."""

import msgspec

from adjourn.core.agent.calls import Report
from adjourn.core.ask import Ask, AskReason, number_of_call
from adjourn.core.call import Call
from adjourn.core.diffstat import Diffstat
from adjourn.core.task import Milliseconds, Run, Task


class AskedTogether(msgspec.Struct, frozen=True, kw_only=True):
    """A clarification that waits for its answers: several questions, with files of its own."""

    id: str
    asked_at: Milliseconds


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A task with what belongs to it, as of one moment."""

    task: Task
    run: Run | None
    asks: tuple[Ask, ...]
    calls: dict[int, Call]
    waiting_on: tuple[str, ...] = ()
    replaced: dict[str, Call] = {}  # by the id of the ask that is there instead
    why: dict[str, AskReason] = {}  # by the id of the ask
    # By the id of an open ask, or of one that it replaces: texts of files as they were at that time
    copies: dict[str, dict[str, str | None]] = {}
    originals: dict[int, bytes] = {}  # of edited calls, by their numbers
    report: Report | None = None  # what the run of an agent says of itself
    all_calls: tuple[Call, ...] = ()  # of the task, without the commands that start its runs
    not_made: frozenset[int] = frozenset()  # the numbers of approved calls that were never made
    clarification: AskedTogether | None = None
    changes: Diffstat | None = None  # of a task whose work is being reviewed

    @property
    def open_asks(self) -> tuple[Ask, ...]:
        """The asks that still need a person."""
        return tuple(ask for ask in self.asks if ask.is_open)

    @property
    def unmade_calls(self) -> tuple[Call, ...]:
        """The calls that were approved, and that an agent never made before its task ended."""
        return tuple(call for call in self.all_calls if call.number in self.not_made)

    def call_of(self, ask: Ask) -> Call | None:
        """Return the call that an ask is about; a question is about none."""
        number = number_of_call(ask)
        return None if number is None else self.calls.get(number)

    def original_of(self, ask: Ask) -> bytes | None:
        """Return the call of an ask as it was before somebody edited it, if somebody did."""
        number = number_of_call(ask)
        return None if number is None else self.originals.get(number)

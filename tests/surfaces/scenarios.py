"""One table of what people do to tasks, and what must come of it on every surface.

A surface joins with a driver: a class with these methods, and a line in `DRIVERS` of the test.
"""

from typing import Protocol

import msgspec

GATED = ("sh", "-c", "echo ran >> effects")
ASKING = ("sh", "-c", 'where=$(adjourn ask "Where?") || exit; echo $where >> effects')


class Driver(Protocol):
    """A person or a program at one surface."""

    def start(self, command: tuple[str, ...], *, is_gated: bool) -> str:
        """Start a command, wait until it needs somebody, and return its task."""
        ...

    def approve(self, task: str) -> None:
        """Approve the one call that the task asks about, and go on with the task to its end."""
        ...

    def reject(self, task: str) -> None:
        """Reject it, and go on with the task to its end."""
        ...

    def answer(self, task: str, text: str) -> None:
        """Answer the one question of the task, and go on with it to its end."""
        ...

    def restart(self, task: str) -> None:
        """Run the task again from nothing, until it needs somebody."""
        ...

    def cancel(self, task: str) -> None:
        """End the task."""
        ...


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, and what must be so afterwards."""

    command: tuple[str, ...]
    is_gated: bool
    does: tuple[tuple[str, ...], ...]  # methods of a driver, with what they take beside the task
    state: str
    effects: tuple[str, ...]
    events: tuple[str, ...]  # their kinds


_ASKED = ("task_created", "ask_opened", "run_waiting")
_RUN = ("run_claimed", "call_executing")
_APPROVED = ("ask_approved", "task_queued", *_RUN, "program_executed", "run_completed")
_CANCELED = ("ask_withdrawn", "task_canceled")
SCENARIOS = {
    "approve": Scenario(
        command=GATED,
        is_gated=True,
        does=(("approve",),),
        state="succeeded",
        effects=("ran",),
        events=(*_ASKED, *_APPROVED),
    ),
    "reject": Scenario(
        command=GATED,
        is_gated=True,
        does=(("reject",),),
        state="failed",
        effects=(),
        events=(*_ASKED, "ask_rejected", "task_refused"),
    ),
    "answer": Scenario(
        command=ASKING,
        is_gated=False,
        does=(("answer", "here"),),
        state="succeeded",
        effects=("here",),
        events=(
            "task_created",
            *_RUN,
            "ask_opened",
            "run_waiting",
            "ask_answered",
            "task_queued",
            *_RUN,
            "run_completed",
        ),
    ),
    "cancel": Scenario(
        command=GATED,
        is_gated=True,
        does=(("cancel",),),
        state="canceled",
        effects=(),
        events=(*_ASKED, *_CANCELED),
    ),
    "restart, then approve": Scenario(
        command=GATED,
        is_gated=True,
        does=(("cancel",), ("restart",), ("approve",)),
        state="succeeded",
        effects=("ran",),
        events=(*_ASKED, *_CANCELED, "task_restarted", *_ASKED[1:], *_APPROVED),
    ),
}

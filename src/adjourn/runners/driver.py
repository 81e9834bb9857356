"""What the exit of a driver means.

A process of ours that runs an agent and keeps what the agent wants in the store.
"""

import os
import sys

from adjourn.core import exits
from adjourn.core.outcome import Completed, Exit, Failed, Interrupted, Outcome, Standing, Waits
from adjourn.core.policy.judgement import Effect
from adjourn.core.task import PauseReason
from adjourn.core.text.render import block
from adjourn.runners.command import ending

# A service that the agent needs is away, or refuses: what the system calls a failure for now. The
# task is paused, and can go on from where it is.
UNAVAILABLE = 75
LIMIT_REACHED = 76  # the task is paused, and can go on when a person wants that
STOPPED = 77  # somebody ended the agent's program; its session is as it was
NO_STORE = 74  # what the system calls a failure to write: nothing could be put in order
INTERRUPTED = 130  # what a driver says that was told to stop and has put all in order
_CAUSES = {
    UNAVAILABLE: PauseReason.UNAVAILABLE,
    LIMIT_REACHED: PauseReason.LIMIT_REACHED,
    STOPPED: PauseReason.USER_INTERRUPT,
}
_SIGNALS = 128  # a shell, and who catches a signal, adds its number to this


class DriverRunner:
    """Knows what the exit of a driver means, which asks and reports in the store."""

    def __init__(self, *, effect: Effect, needs_session: bool, makes_calls: bool) -> None:
        self.effect = effect
        self.needs_session = needs_session
        self.makes_calls = makes_calls

    def meaning(self, exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
        """Say what an exit meant."""
        if exit.interrupted or exit.code == INTERRUPTED:
            return Interrupted()
        if exit.error:
            return Failed(exit.error)
        if exit.may_leave_asks and exit.left and exit.left.problem:
            # Its session would be lost; so a person can tell it what is wrong with its files
            why = f"it waits for a clarification that cannot be read: {exit.left.problem}"
            return Interrupted(why, cause=PauseReason.UNAVAILABLE)
        if exit.signal or exit.code == NO_STORE:
            return self._death(exit.signal, standing)
        # What its tools asked, and the tasks that they started, are part of the work: its agent
        # is not done before it was told what came of them.
        is_waiting = bool(
            standing.open_asks
            or standing.untold_asks
            or standing.open_children
            or standing.ended_children
        )
        if exit.code == exits.PAUSED and (is_waiting or standing.settled_asks):
            return Waits()
        if exit.code == exits.COMPLETED:
            return Waits() if is_waiting else Completed(standing.told)
        why = standing.told or ending(exit)
        if exit.code in _CAUSES:
            return Interrupted(why, cause=_CAUSES[exit.code])
        return Failed(why)

    def _death(self, signal: int | None, standing: Standing) -> Outcome:
        """Say what is left of a run whose driver was cut off.

        All that it had done is in the store, or in its agent's session.
        """
        killed = f"the process that drives it was ended by signal {signal}"
        why = killed if signal else "the store could not be written to while it ran"
        cause = PauseReason.USER_INTERRUPT if signal else PauseReason.UNAVAILABLE
        if self.effect is not Effect.READ_ONLY and not standing.resumable:
            return Failed(why)
        return Waits() if standing.open_asks else Interrupted(why, died=True, cause=cause)


class StopRequest:
    """Polls readable from the moment that the driver is told to stop."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Return what to poll."""
        return self._fd

    def make(self) -> None:
        """Tell the driver to stop. A signal handler may call this at any time."""
        os.eventfd_write(self._fd, 1)

    def take(self) -> None:
        """Stop polling readable until the next request."""
        os.eventfd_read(self._fd)


def say(text: str) -> None:
    """Print what the agent says."""
    sys.stdout.write(f"{block(text)}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Print what goes wrong."""
    sys.stderr.write(f"{block(text)}\n")
    sys.stderr.flush()


def was_stopped(code: int | None) -> bool:
    """Say whether a program that did not say how its work ended was ended from outside.

    Some leave as if all were well.
    """
    return code is not None and (code <= 0 or code > _SIGNALS)

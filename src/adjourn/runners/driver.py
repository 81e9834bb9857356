"""What the exit of a driver means: a process of ours that runs an agent and keeps what the agent wants in the store."""

from adjourn.core import exits
from adjourn.core.judgement import Effect
from adjourn.core.outcome import Completed, Exit, Failed, Interrupted, Outcome, Standing, Waits
from adjourn.runners.command import ending

FOR_NOW = 75  # what the system calls a failure for now: the task is paused, and can go on from where it is


class DriverRunner:
    """Knows that a driver asks in the store, says in the store what it did, and leaves with a plain exit code."""

    def __init__(self, *, effect: Effect, needs_session: bool, makes_calls: bool) -> None:
        self.effect = effect
        self.needs_session = needs_session
        self.makes_calls = makes_calls

    def meaning(self, exit: Exit, standing: Standing) -> Outcome:  # noqa: A002 -- the word for it
        """Say what an exit meant."""
        if exit.interrupted:
            return Interrupted()
        if exit.error:
            return Failed(exit.error)
        if exit.code == exits.PAUSED and (standing.open_asks or standing.settled_asks):
            return Waits()
        if exit.code == exits.COMPLETED and not standing.open_asks:
            return Completed(standing.told)
        why = standing.told or ending(exit)
        # A process that changes nothing loses nothing by its death: all that it had done is in the store.
        can_go_on = exit.code == FOR_NOW or (exit.signal and self.effect is Effect.READ_ONLY)
        return Interrupted(why) if can_go_on else Failed(why)

"""What the exit of a driver means: the whole table."""

import pytest

from adjourn.core.outcome import Completed, Exit, Failed, Interrupted, Outcome, Standing, Waits
from adjourn.core.policy.judgement import Effect
from adjourn.core.task import PauseReason
from adjourn.runners.driver import DriverRunner, was_stopped

AGENT = DriverRunner(effect=Effect.READ_ONLY, needs_session=False, makes_calls=False)
FOREIGN = DriverRunner(effect=Effect.UNKNOWN, needs_session=True, makes_calls=True)
NOTHING = Standing(told="so far")
SAVED = Standing(told="so far", resumable=True)
ASKS = Standing(open_asks=("ask-1",), resumable=True)
SETTLED = Standing(settled_asks=True, resumable=True)
KILLED = Exit(signal=9)
NO_STORE = "the store could not be written to while it ran"
DEATH = "the process that drives it was ended by signal 9"

MEANINGS = [
    (FOREIGN, Exit(code=0), SAVED, Completed("so far")),
    (FOREIGN, Exit(code=0), ASKS, Waits()),  # what its tools asked is open
    (FOREIGN, Exit(code=10), ASKS, Waits()),
    (FOREIGN, Exit(code=10), SETTLED, Waits()),
    (FOREIGN, Exit(code=10), SAVED, Failed("so far")),
    (FOREIGN, Exit(code=1), SAVED, Failed("so far")),
    (FOREIGN, Exit(code=75), SAVED, Interrupted("so far", cause=PauseReason.UNAVAILABLE)),
    (FOREIGN, Exit(code=130), SAVED, Interrupted()),  # somebody told the driver itself to stop
    (FOREIGN, KILLED, SAVED, Interrupted(DEATH, died=True)),
    # What it was doing could not be written down
    (
        FOREIGN,
        Exit(code=74),
        SAVED,
        Interrupted(NO_STORE, died=True, cause=PauseReason.UNAVAILABLE),
    ),
    (FOREIGN, Exit(code=74), NOTHING, Failed(NO_STORE)),
    (FOREIGN, KILLED, SETTLED, Interrupted(DEATH, died=True)),
    (FOREIGN, KILLED, ASKS, Waits()),  # all that it wanted is in the store
    (FOREIGN, KILLED, NOTHING, Failed(DEATH)),  # there is nothing to go on from
    (AGENT, KILLED, NOTHING, Interrupted(DEATH, died=True)),  # its conversation is in the store
    (AGENT, KILLED, Standing(open_asks=("ask-1",)), Waits()),
    # It was told to stop, and killed after the grace
    (FOREIGN, Exit(signal=9, interrupted=True), NOTHING, Interrupted()),
    (FOREIGN, Exit(signal=9, interrupted=True), ASKS, Interrupted()),
    (
        FOREIGN,
        Exit(signal=9, error="it took too long and was stopped"),
        SAVED,
        Failed("it took too long and was stopped"),
    ),
]


@pytest.mark.parametrize(("runner", "exit_", "standing", "outcome"), MEANINGS)
def test_the_exit_of_a_driver_means_what_the_table_says(
    runner: DriverRunner, exit_: Exit, standing: Standing, outcome: Outcome
) -> None:
    """D-R17: a session that could go on is not thrown away with the process that drove it."""
    assert runner.meaning(exit_, standing) == outcome


def test_a_program_that_was_ended_from_outside_is_told_from_one_that_gave_up() -> None:
    assert all(was_stopped(code) for code in (-9, -15, -11, 0, 130, 137, 143))
    assert not any(was_stopped(code) for code in (None, 1, 2, 101, 127, 128))

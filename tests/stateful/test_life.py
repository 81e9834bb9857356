"""The memory store is the model; every other store must agree with it step by step, whatever happens."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres import Server
from tests.stateful.machine import Life
from tests.stateful.world import World

ANY = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
SHARES = {
    "ci": settings(ANY, derandomize=True, max_examples=150, stateful_step_count=60),
    "full": settings(ANY, print_blob=True, max_examples=5_000, stateful_step_count=100),
}


@pytest.mark.timeout(3 * 3600)
def test_whatever_happens_the_stores_agree_and_the_promises_hold(sweep: str) -> None:
    """A-R1, A-R3, A-R50, A-R53 to A-R56, A-R60, C-R14, D-R6, D-R30, D-R32, D-R44: any sequence of calls, crashes included."""
    run_state_machine_as_test(Life, settings=SHARES[sweep])


SHARED = {
    "ci": settings(ANY, derandomize=True, max_examples=12, stateful_step_count=30),
    "full": settings(ANY, print_blob=True, max_examples=1_000, stateful_step_count=100),
}


@pytest.mark.timeout(3 * 3600)
def test_whatever_happens_postgres_agrees_and_the_promises_hold(sweep: str, postgres: Server) -> None:
    class SharedLife(Life):
        """The same life on the store that many machines share."""

        def new_world(self) -> World:
            return World(postgres.fresh_store())

    run_state_machine_as_test(SharedLife, settings=SHARED[sweep])

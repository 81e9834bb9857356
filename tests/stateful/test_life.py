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


# The same scenarios each time. Each statement is a round trip here, and each step looks at everything three times.
SHARED = {
    "ci": settings(ANY, derandomize=True, max_examples=12, stateful_step_count=30),
    "full": settings(ANY, derandomize=True, max_examples=1_000, stateful_step_count=30),
}


@pytest.mark.timeout(3 * 3600)
def test_whatever_happens_memory_a_file_and_postgres_agree_and_the_promises_hold(sweep: str, postgres: Server) -> None:
    lives = 0

    class SharedLife(Life):
        """The same life on three stores, the one that many machines share among them."""

        def new_world(self) -> World:
            nonlocal lives
            lives += 1
            return World(postgres.fresh_store())

    run_state_machine_as_test(SharedLife, settings=SHARED[sweep])
    print(f"\n{lives} lives on three stores, all with the same end")

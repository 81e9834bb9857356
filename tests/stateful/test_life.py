"""The memory store is the model.

Every other store must agree with it step by step, whatever happens.
"""

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres import Server
from tests.stateful.machine import Life
from tests.stateful.world import World

ANY = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
SHARES = {
    "ci": settings(ANY, derandomize=True, max_examples=150, stateful_step_count=60),
    "full": settings(ANY, print_blob=True, max_examples=5_000, stateful_step_count=100),
}


@pytest.mark.timeout(3 * 3600)
def test_whatever_happens_the_stores_agree_and_the_promises_hold(sweep: str) -> None:
    """A-R1, A-R3, A-R50, A-R53 to A-R56, A-R60, C-R14, D-R6, D-R30, D-R32, D-R44.

    Any sequence of calls, crashes included.
    """
    run_state_machine_as_test(Life, settings=SHARES[sweep])


# The same scenarios each time, in batches that can be lived through side by side.
# Each statement is a round trip here, and each step looks at everything three times.
BATCHES = {"ci": (1, 12), "full": (10, 100)}  # how many, and how many lives in each


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Live through as many batches as the share of the sweep has."""
    if "batch" in metafunc.fixturenames:
        batches, _ = BATCHES[str(metafunc.config.getoption("--sweep"))]
        metafunc.parametrize("batch", range(batches))


@pytest.mark.timeout(3600)
def test_whatever_happens_memory_a_file_and_postgres_agree_and_the_promises_hold(
    sweep: str, batch: int, postgres: Server
) -> None:
    lives = 0

    @seed(batch)
    class SharedLife(Life):
        """The same life on three stores, the one that many machines share among them."""

        def new_world(self) -> World:
            nonlocal lives
            lives += 1
            return World(postgres.fresh_store())

    _, enough = BATCHES[sweep]
    run_state_machine_as_test(
        SharedLife, settings=settings(ANY, max_examples=enough, stateful_step_count=30)
    )
    print(f"\n{lives} lives on three stores, all with the same end")
    assert lives >= enough

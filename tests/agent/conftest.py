"""What every test of the built-in agent has: the store that was asked for."""

from collections.abc import Iterator

import pytest

from tests.stores import on_one_store


@pytest.fixture(autouse=True)
def on_the_store_that_was_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the program keep its tasks where `--on` says."""
    yield from on_one_store(request)

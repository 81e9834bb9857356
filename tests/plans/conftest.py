"""What every test of plans has.

A shell that can write plans, and the promise that nothing is left running.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plans.planner import Planner
from tests.stores import on_one_store


@pytest.fixture(autouse=True)
def on_the_store_that_was_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the program keep its tasks where `--on` says."""
    yield from on_one_store(request)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Planner]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = Planner(tmp_path)
    yield shell
    assert shell.end() == {}

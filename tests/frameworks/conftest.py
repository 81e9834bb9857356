"""What the tests of frameworks have: a person's shell, and a model that plays a script."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stage import Stage
from tests.stores import on_one_store


@pytest.fixture(autouse=True)
def on_the_store_that_was_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the program keep its tasks where `--on` says."""
    yield from on_one_store(request)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    assert made.shell.end() == {}

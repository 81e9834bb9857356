"""What the tests of ACP have: a scripted agent, in a scene of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acp.scene import Scene
from tests.stores import on_one_store


@pytest.fixture(autouse=True)
def on_the_store_that_was_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the program keep its tasks where `--on` says."""
    yield from on_one_store(request)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene; afterwards no process of the agent may be left."""
    made = Scene(tmp_path)
    yield made
    assert made.shell.end() == {}

"""What the tests of Claude Code have: the real program, in a scene of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claude.scene import Fake, Scene
from tests.programs import program
from tests.stores import on_one_store


@pytest.fixture(autouse=True)
def on_the_store_that_was_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the program keep its tasks where `--on` says."""
    yield from on_one_store(request)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene with the real Claude Code; afterwards no process of it may be left."""
    scene = Scene(tmp_path, program("claude"))
    yield scene
    assert scene.shell.end() == {}


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """Return a scene with a fake Claude Code, which runs everywhere.

    Afterwards no process of it may be left.
    """
    scene = Fake(tmp_path)
    yield scene
    assert scene.shell.end() == {}

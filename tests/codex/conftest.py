"""What the tests of Codex have: the real program, in a scene of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codex.scene import Scene
from tests.programs import program


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene with the real Codex; afterwards no process of it may be left."""
    scene = Scene(tmp_path, program("codex"))
    yield scene
    assert scene.shell.end() == {}

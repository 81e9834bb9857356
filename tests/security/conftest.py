"""What the attacks have: a person's shell, and the real agents in scenes of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claude.scene import Scene as ClaudeScene
from tests.codex.scene import Scene as CodexScene
from tests.e2e.conftest import shell as shell  # noqa: PLC0414 -- the same fixture
from tests.programs import program


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeScene]:
    """Return a scene with the real Claude Code; afterwards no process of it may be left."""
    scene = ClaudeScene(tmp_path, program("claude"))
    yield scene
    assert scene.shell.end() == {}


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[CodexScene]:
    """Return a scene with the real Codex; afterwards no process of it may be left."""
    scene = CodexScene(tmp_path, program("codex"))
    yield scene
    assert scene.shell.end() == {}

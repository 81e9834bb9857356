"""What every test of plans has: a shell that can write plans, and the promise that nothing is left running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plans.planner import Planner


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Planner]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = Planner(tmp_path)
    yield shell
    assert shell.end() == {}

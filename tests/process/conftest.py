"""A fork server for each module, a stage for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.process.forks.client import ForkServer
from tests.process.scene import Stage


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    server = ForkServer.start()
    yield server
    server.close()


@pytest.fixture
def stage(forks: ForkServer, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(forks, tmp_path)
    yield stage
    stage.clear()

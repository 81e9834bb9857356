"""What every crash test needs."""

from collections.abc import Iterator

import pytest

from tests.crash.build import build
from tests.crash.sweep import Sweep, sweeping
from tests.crash.tools import Tools


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """Return the library and the recorder, built from source."""
    return build(tmp_path_factory.mktemp("crash-tools"))


@pytest.fixture(scope="module")
def toys(tools: Tools) -> Iterator[Sweep]:
    """Return servers that know the toy programs."""
    with sweeping(tools, modules=["tests.crash.toys"]) as sweep:
        yield sweep

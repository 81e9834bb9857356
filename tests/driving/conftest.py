"""What every test of drivers has.

A shell in a directory of its own, and the promise that nothing is left running.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.stores import on_store


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = on_store(request, Shell(tmp_path))
    yield shell
    assert shell.end() == {}

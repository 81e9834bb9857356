"""What every test of the TUI has: a shell, whose store a TUI in this process may open, too."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.stores import on_store


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    place = tmp_path / "work"
    place.mkdir()
    shell = on_store(request, Shell(place))
    before = os.getcwd()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "PATH"):
            patch.setenv(name, shell.environment[name])
        for name in ("CI", "NO_COLOR", "VISUAL", "EDITOR"):
            patch.delenv(name, raising=False)
        patch.setenv("TERM", "xterm-256color")
        os.chdir(place)
        try:
            yield shell
        finally:
            os.chdir(before)
    assert shell.end() == {}

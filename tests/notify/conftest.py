"""What the tests of notifications with buttons have: a shell, and stand-ins of the channels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.notify.telegram_server import TelegramServer, telegram
from tests.stores import on_store


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = on_store(request, Shell(tmp_path))
    yield shell
    assert shell.end() == {}


@pytest.fixture
def bot() -> Iterator[TelegramServer]:
    """Return a stand-in of Telegram."""
    with telegram() as server:
        yield server

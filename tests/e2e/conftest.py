"""What every end-to-end test has: a shell, and the promise that nothing is left running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = Shell(tmp_path)
    if request.config.getoption("--on") == "postgres":
        share(shell, request.getfixturevalue("database"), monkeypatch)
    yield shell
    assert shell.end() == {}


def share(shell: Shell, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a shell's program keep its tasks in PostgreSQL, and its files in a place of its own."""
    from adjourn.stores.postgres.store import PostgresStore
    from adjourn.wiring.shared import place_for

    home = shell.place.with_name(f"{shell.place.name}-state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    shell.environment |= {"ADJOURN_STORE": url, "XDG_STATE_HOME": str(home)}
    shell.store = Path(place_for(url))
    PostgresStore(url).close()

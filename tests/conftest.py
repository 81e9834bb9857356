"""What every test may ask for."""

import signal
import tempfile
from pathlib import Path

import hypothesis
import pytest

from tests.postgres import Server, server

SHARES = ("ci", "full")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person ask for the long sweeps; CI's share of them is the default."""
    parser.addoption(
        "--sweep",
        choices=SHARES,
        default="ci",
        help="how much of a long sweep to run: CI's share, or all of it",
    )
    parser.addoption(
        "--on",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="the store that the program uses in a Shell",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have CI's share try the same examples every time.

    Whoever asks for everything gets new ones.
    """
    hypothesis.settings.register_profile("ci", derandomize=True)
    if config.getoption("--sweep") == "ci":
        hypothesis.settings.load_profile("ci")


def pytest_sessionstart() -> None:
    """Refuse to begin below a policy: it would hold for every test.

    And have terminals that close be noticed.
    """
    # Whoever says nohup has it ignored by all that is started, too
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for place in Path(tempfile.gettempdir(), "tests").resolve().parents:
        if (place / ".adjourn" / "policy.toml").exists():
            pytest.exit(
                f"{place / '.adjourn'} is above the places of the tests, and its policy would hold for them",
                returncode=3,
            )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the files of one machine's store, where the store is a database."""
    if config.getoption("--on") == "postgres":
        for item in items:
            for mark in item.iter_markers("one_machine"):
                item.add_marker(pytest.mark.skip(reason=f"of one machine: {mark.args[0]}"))


@pytest.fixture(scope="session")
def sweep(pytestconfig: pytest.Config) -> str:
    """Return the share of a long sweep to run: `ci` or `full`."""
    return str(pytestconfig.getoption("--sweep"))


@pytest.fixture(scope="session")
def postgres() -> Server:
    """Return a PostgreSQL server, started once for this session."""
    return server()


@pytest.fixture
def database(postgres: Server) -> str:
    """Return the address of a database of the test's own, with an empty store in it."""
    return postgres.fresh_store()

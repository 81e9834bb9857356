"""Which store the program uses in a shell: `--on` says it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.shell import Shell


def on_store(request: pytest.FixtureRequest, shell: Shell) -> Shell:
    """Have a shell's program use the store that this test run is about."""
    if request.config.getoption("--on") == "postgres":
        shell.share(request.getfixturevalue("postgres").fresh_store())
    return shell


def on_lasting_store(request: pytest.FixtureRequest, shell: Shell) -> Shell:
    """The same, for a shell that outlives one test: nobody else empties its database."""
    if request.config.getoption("--on") == "postgres":
        stack = ExitStack()
        shell.share(stack.enter_context(request.getfixturevalue("postgres").empty_database()))
        request.addfinalizer(stack.close)
    return shell


def on_one_store(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same, for every shell that a test opens, wherever it does."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--on") == "postgres":
            patch.setattr(
                Shell, "database_of_all", request.getfixturevalue("postgres").fresh_store()
            )
        yield

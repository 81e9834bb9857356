"""A store that comes with a repository: what is approved in it was not approved here."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.shell import Shell

GIT = ("git", "-c", "user.name=mallory", "-c", "user.email=m@example.com")


@pytest.mark.parametrize("words", [("worker", "--once"), ("resume", "TASK"), ("restart", "TASK"), ("run", "--", "true")])
@pytest.mark.one_machine("a repository brings files, no database")
def test_nothing_is_started_out_of_a_store_that_a_repository_brought_along(
    shell: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """A hostile repository ships a store with an approved call; whoever clones it has approved nothing."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.adjourn("approve", manifest["asks"][0]["id"])
    shell.run("git", "init", "-q", ".")
    shell.run("git", "add", "--force", ".adjourn/adjourn.db", "approved.sh")
    shell.run(*GIT, "commit", "-q", "-m", "harmless")
    shell.run("git", "clone", "-q", ".", "clone")
    shutil.rmtree(shell.store)
    clone = tmp_path / "clone"
    told = shell.adjourn(*(word.replace("TASK", manifest["task_id"]) for word in words), cwd=clone, expect=5)
    assert "part of the repository" in told.err
    assert not (clone / "effects").exists()

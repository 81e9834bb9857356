"""What `store` prints as the way out works when it is pasted."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.shell import Done, Shell

pytestmark = pytest.mark.one_machine("they are about directories")


def paste(shell: Shell, refused: Done) -> Done:
    """Run the command that an error names, exactly as it is printed."""
    (line,) = (line for line in refused.err.splitlines() if line.startswith("  try: "))
    return shell.line(line.removeprefix("  try: "))


@pytest.fixture
def copied(shell: Shell) -> str:
    """Return a copy of a store with an open ask, in a directory whose name has a blank."""
    shell.paused("sh", "-c", "exit 90")
    copy = shell.place / "a copy"
    shutil.copytree(shell.store, copy)
    return str(copy)


def test_adopt_names_the_command_that_adopts(shell: Shell, copied: str) -> None:
    refused = shell.adjourn("run", "--store", copied, "--", "true", expect=5)
    (line,) = (line for line in refused.err.splitlines() if line.startswith("  try: "))
    asked = shell.line(line.removeprefix("  try: "), expect=2)
    assert "nothing was changed" in asked.err
    told = paste(shell, asked)
    assert "Adopted" in told.out
    inbox = told.out.splitlines()[-1].partition("again: ")[2]
    assert "approval" in shell.line(inbox).out
    again = shell.adjourn("store", "adopt", "--store", copied, "--yes", expect=4)
    assert "waiting" in paste(shell, again).out


def test_accept_names_the_command_that_accepts(shell: Shell) -> None:
    shell.paused("sh", "-c", "exit 90")
    shell.adjourn("store", "backup", "early.db")
    shell.adjourn("run", "--", "true")
    for name in ("adjourn.db-wal", "adjourn.db-shm"):
        (shell.store / name).unlink(missing_ok=True)
    shutil.copy(shell.place / "early.db", shell.store / "adjourn.db")
    refused = shell.adjourn("run", "--", "true", expect=5)
    (line,) = (line for line in refused.err.splitlines() if line.startswith("  try: "))
    told = paste(shell, shell.line(line.removeprefix("  try: "), expect=2))
    assert "Accepted" in told.out
    assert "waiting" in paste(shell, shell.adjourn("store", "accept", "--yes", expect=4)).out


def test_accept_of_a_copy_names_adopt(shell: Shell, copied: str) -> None:
    refused = shell.adjourn("store", "accept", "--store", copied, "--yes", expect=4)
    (line,) = (line for line in refused.err.splitlines() if line.startswith("  try: "))
    assert "Adopted" in shell.line(f"{line.removeprefix('  try: ')} --yes").out


def test_a_backup_that_exists_already_leads_to_one_that_does_not(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    shell.adjourn("store", "backup", "my backup.db")
    for _ in range(2):
        told = paste(shell, shell.adjourn("store", "backup", "my backup.db", expect=4))
        assert Path(told.out.partition(" to ")[2].partition(" (")[0]).exists()
    assert len(list(shell.place.glob("my backup*.db"))) == 3

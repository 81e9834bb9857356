"""What lies above a project and belongs to somebody else is no store and no policy of the project."""

import os
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.needs import missing

MALLORY = 61_234  # a uid that no test machine gives to anybody
NEVER = '[[rule]]\nargs = ["**"]\naction = "never"\n'

pytestmark = pytest.mark.one_machine("a database is where its URL says")


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """Return the directory of a project, two levels below the place of the shell."""
    place = tmp_path / "theirs" / "mine"
    place.mkdir(parents=True)
    return place


def give(path: Path, uid: int = MALLORY) -> None:
    """Give a directory with all that is in it to another user, as if that user had made it."""
    if os.geteuid() != 0:
        missing("the right to give files away")
    for each in (path, *path.rglob("*")):
        os.lchown(each, uid, uid)


def plant(place: Path, *, policy: str = NEVER) -> Path:
    """Put a store with a policy into a directory."""
    store = place / ".adjourn"
    store.mkdir(mode=0o755)
    (store / "policy.toml").write_text(policy)
    return store


def starts(shell: Shell, place: Path) -> bool:
    """Return whether a command starts there, with a store of its own."""
    done = shell.adjourn("run", "--", "true", cwd=place, expect=None)
    assert "Traceback" not in done.err
    return done.code == 0 and (place / ".adjourn" / "adjourn.db").exists()


def judged(shell: Shell, place: Path) -> str:
    """Return what the policy says there of a command."""
    words = (
        "policy",
        "explain",
        "--store",
        str(shell.place / "elsewhere"),
        "--output",
        "json",
        "--",
        "true",
    )
    action: str = shell.adjourn(*words, cwd=place).doc["action"]
    return action


def test_another_users_store_above_does_not_block_a_project(shell: Shell, deep: Path) -> None:
    give(plant(deep.parent))
    assert starts(shell, deep)


def test_another_users_policy_above_is_not_obeyed(shell: Shell, deep: Path) -> None:
    give(plant(deep.parent))
    assert judged(shell, deep) == "prompt"


def test_another_users_link_to_a_store_of_mine_is_not_followed(shell: Shell, deep: Path) -> None:
    shell.adjourn("run", "--store", str(shell.place / "real"), "--", "true")
    link = deep.parent / ".adjourn"
    link.symlink_to(shell.place / "real")
    give(link)
    assert starts(shell, deep)


def test_another_users_repository_above_gets_no_store_of_mine(shell: Shell, deep: Path) -> None:
    (deep.parent / ".git").mkdir()
    (deep.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    give(deep.parent / ".git")
    assert starts(shell, deep)


def test_nothing_of_mine_is_found_above_another_users_directory(shell: Shell, deep: Path) -> None:
    shell.adjourn("run", "--", "true")
    os.chown(deep.parent, MALLORY, MALLORY) if os.geteuid() == 0 else missing("root")
    assert starts(shell, deep)


@pytest.mark.parametrize("what", [".adjourn", ".git"])
def test_a_stray_directory_where_everybody_can_write_captures_nothing(
    shell: Shell, deep: Path, what: str
) -> None:
    """As in /tmp, whoever left it there."""
    deep.parent.chmod(0o1777)
    stray = deep.parent / what
    stray.mkdir(mode=0o700)
    if what == ".git":
        (stray / "HEAD").write_text("ref: refs/heads/main\n")
    assert starts(shell, deep)
    assert not (deep.parent / ".adjourn" / "adjourn.db").exists()


def test_a_store_above_the_repository_is_not_used(shell: Shell, deep: Path) -> None:
    (deep.parent / ".adjourn").mkdir(mode=0o700)
    shell.run("git", "init", "-q", str(deep))
    below = deep / "src"
    below.mkdir()
    shell.adjourn("run", "--", "true", cwd=below)
    assert (deep / ".adjourn" / "adjourn.db").exists()


def test_a_store_above_the_home_directory_is_not_used(shell: Shell, deep: Path) -> None:
    (deep.parent.parent / ".adjourn").mkdir(mode=0o700)
    shell.environment["HOME"] = str(deep.parent)
    assert starts(shell, deep)


def test_my_own_store_above_is_still_used(shell: Shell, deep: Path) -> None:
    shell.adjourn("run", "--", "true", cwd=deep.parent)
    give(plant(deep))
    shell.adjourn("run", "--", "true", cwd=deep)
    assert len(shell.adjourn("tasks", "--output", "json", cwd=deep.parent).doc["tasks"]) == 2


def test_a_policy_of_mine_above_the_repository_still_holds(shell: Shell, deep: Path) -> None:
    """It can only tighten, so nothing that is mine is overlooked."""
    plant(deep.parent)
    shell.run("git", "init", "-q", str(deep))
    assert judged(shell, deep) == "never"


def test_the_policy_of_a_workspace_holds_whoever_owns_the_workspace(
    shell: Shell, deep: Path
) -> None:
    """As in a container that runs as root on a checkout of somebody else."""
    plant(deep)
    give(deep)
    assert judged(shell, deep) == "never"


def test_doctor_names_what_is_ignored(shell: Shell, deep: Path) -> None:
    planted = plant(deep.parent)
    give(planted)
    done = shell.adjourn("doctor", "--output", "json", cwd=deep, expect=None)
    (finding,) = [each for each in done.doc["findings"] if each["check"] == "ignored"]
    assert str(planted) in finding["says"]
    assert str(MALLORY) in finding["says"]

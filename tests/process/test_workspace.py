"""A workspace is looked at from outside.

What it has checked out, and what changed, without running any of it.
"""

import os
import time
from pathlib import Path

import pytest

from adjourn.workspace.git import Head, changed_since, head_of

COMMIT = "6f1ed002ab5595859014ebf0951522d9e4dbd9f2"


def repository(place: Path, head: str = "ref: refs/heads/main\n", **refs: str) -> Path:
    git = place / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text(head)
    for name, commit in refs.items():
        (git / "refs" / "heads" / name).write_text(commit + "\n")
    return git


def test_a_branch_has_its_commit(tmp_path: Path) -> None:
    repository(tmp_path, main=COMMIT)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert (
        head_of(str(below)) == head_of(str(tmp_path)) == Head(ref="refs/heads/main", commit=COMMIT)
    )


def test_a_commit_by_itself_has_no_branch(tmp_path: Path) -> None:
    repository(tmp_path, head=COMMIT)
    assert head_of(str(tmp_path)) == Head(ref=None, commit=COMMIT)


def test_a_branch_may_be_packed_or_unborn(tmp_path: Path) -> None:
    git = repository(tmp_path)
    assert head_of(str(tmp_path)) == Head(ref="refs/heads/main", commit=None)
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{'0' * 40} refs/heads/mainly\n{COMMIT} refs/heads/main\n^{'1' * 40}\n"
    )
    assert head_of(str(tmp_path)) == Head(ref="refs/heads/main", commit=COMMIT)


def test_a_worktree_shares_its_branches(tmp_path: Path) -> None:
    git = repository(tmp_path / "main", other=COMMIT)
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "worktrees" / "w" / "HEAD").write_text("ref: refs/heads/other")
    (git / "worktrees" / "w" / "commondir").write_text("../..\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(f"gitdir: {git}/worktrees/w\n")
    assert head_of(str(tmp_path / "w")) == Head(ref="refs/heads/other", commit=COMMIT)


@pytest.mark.parametrize(
    "head",
    [
        "",
        "ref: ",
        "ref: refs/../../../etc/passwd",
        "ref: /etc/passwd",
        "\x1b[2J",
        "x" * 10_000,
        "ref: refs//a",
        "zz" * 20,
    ],
)
def test_what_makes_no_sense_is_no_commit(tmp_path: Path, head: str) -> None:
    repository(tmp_path, head=head)
    assert head_of(str(tmp_path)) == Head(ref=None, commit=None)


def test_a_pipe_is_not_waited_for_and_a_link_is_not_followed(tmp_path: Path) -> None:
    git = repository(tmp_path, main=COMMIT)
    (git / "HEAD").unlink()
    os.mkfifo(git / "HEAD")
    assert head_of(str(tmp_path)) is None
    (git / "HEAD").unlink()
    (git / "HEAD").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text(COMMIT)
    assert head_of(str(tmp_path)) is None


def test_where_there_is_no_repository_there_is_no_head(tmp_path: Path) -> None:
    assert head_of(str(tmp_path)) is None
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert head_of(str(tmp_path)) is None
    assert head_of(str(tmp_path / "gone")) is None


def test_what_was_written_made_or_removed_is_told(tmp_path: Path) -> None:
    for name in ("kept", "edited", "touched"):
        (tmp_path / name).write_text("as it is")
    for name in ("full", ".git", ".adjourn"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "removed").touch()
    time.sleep(0.05)
    moment = time.time_ns() // 1_000_000
    time.sleep(0.05)
    (tmp_path / "edited").write_text("otherwise")
    # A time that was set back does not hide it: the system notes when that was
    os.utime(tmp_path / "touched", (1, 1))
    (tmp_path / "full" / "removed").unlink()
    (tmp_path / ".git" / "index").touch()
    (tmp_path / ".adjourn" / "x").touch()
    (tmp_path / "link").symlink_to("/")
    assert changed_since(str(tmp_path), moment).paths == ("edited", "full/", "link", "touched")


def test_a_look_ends_and_says_so(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"file{number}").touch()
    part = changed_since(str(tmp_path), 0, most=10)
    assert (len(part.paths), part.looked_at, part.is_whole) == (10, 10, False)
    assert not changed_since(str(tmp_path), 0, seconds=-1).is_whole
    assert changed_since(str(tmp_path), 0).is_whole

"""Sketches of a workspace, and what they say of two moments."""

import os
import subprocess
from pathlib import Path

import pytest

from adjourn.workspace.sketch import compare, decoded, encoded, sketch_of
from tests.needs import needs


class Desk:
    """A workspace that is looked at twice."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._before = b""

    def write(self, name: str, content: str | bytes) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def look(self) -> None:
        self._before = encoded(sketch_of(str(self.place)))

    def changes(self) -> dict[str, tuple[str, int | None, int | None]]:
        stat = compare(decoded(self._before), sketch_of(str(self.place)))
        return {
            change.path: (change.what, change.lines_added, change.lines_removed)
            for change in stat.files
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_lines_that_came_and_went_are_counted(desk: Desk) -> None:
    desk.write("same.txt", "x\n")
    desk.write("deep/er/changed.txt", "one\ntwo\nthree\n")
    desk.write("gone.txt", "a\nb\n")
    desk.look()
    desk.write("deep/er/changed.txt", "one\n2\nthree\nfour\n")
    desk.write("new.txt", "a\nb\nc")
    (desk.place / "gone.txt").unlink()
    assert desk.changes() == {
        "deep/er/changed.txt": ("changed", 2, 1),
        "gone.txt": ("removed", 0, 2),
        "new.txt": ("added", 3, 0),
    }


def test_the_counts_are_those_of_git_where_no_line_moved(desk: Desk, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = [needs("git"), "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    desk.write("a.txt", "".join(f"line {number}\n" for number in range(100)))
    desk.write("b.txt", "x\ny\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    desk.look()
    desk.write(
        "a.txt", "".join(f"line {number}\n" for number in range(100) if number % 7) + "more\n"
    )
    desk.write("b.txt", "")
    stat = {
        line.split("\t")[2]: line.split("\t")[:2] for line in git("diff", "--numstat").splitlines()
    }
    assert {
        path: [str(added), str(removed)] for path, (_, added, removed) in desk.changes().items()
    } == stat


def test_what_was_only_touched_has_not_changed(desk: Desk) -> None:
    desk.write("a.txt", "x\n")
    desk.look()
    os.utime(desk.place / "a.txt", (1, 1))
    (desk.place / "a.txt").chmod(0o600)
    assert desk.changes() == {}


def test_a_change_that_hides_its_time_is_found(desk: Desk) -> None:
    desk.write("a.txt", "x\n")
    os.utime(desk.place / "a.txt", (1, 1))
    desk.look()
    desk.write("a.txt", "y\n")
    os.utime(desk.place / "a.txt", (1, 1))
    assert desk.changes() == {"a.txt": ("changed", 1, 1)}


def test_what_is_not_text_or_very_large_has_no_lines(desk: Desk) -> None:
    desk.write("a.bin", b"\0\1\n")
    desk.write("large.txt", "x\n" * (1 << 20))
    desk.look()
    desk.write("a.bin", b"\0\2\n")
    desk.write("large.txt", "y\n" * (1 << 20))
    assert desk.changes() == {
        "a.bin": ("changed", None, None),
        "large.txt": ("changed", None, None),
    }


def test_nothing_but_plain_files_is_read(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No link is followed, no pipe is opened, and the store and the repository are left out."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text("x\n")
    desk.look()
    os.mkfifo(desk.place / "pipe")
    (desk.place / "link").symlink_to(elsewhere)
    (desk.place / "loop").symlink_to(".")
    desk.write(".git/config", "x\n")
    desk.write(".adjourn/adjourn.db", "x\n")
    assert desk.changes() == {}


def test_names_that_are_no_words_are_spelled_out(desk: Desk) -> None:
    desk.look()
    Path(os.fsdecode(os.fsencode(desk.place) + b"/\xff.txt")).write_text("x\n")
    assert desk.changes() == {"\\udcff.txt": ("added", 1, 0)}


def test_where_a_look_was_cut_short_only_what_is_certain_is_told(desk: Desk) -> None:
    for number in range(20):
        desk.write(f"f{number}.txt", "x\n")
    short = sketch_of(str(desk.place), seconds=-1)
    assert not short.is_whole
    whole = sketch_of(str(desk.place))
    assert compare(short, whole).files == ()
    assert not compare(short, whole).is_whole
    assert compare(whole, short).files == ()

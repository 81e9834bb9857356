"""The harness finds what is broken, and lets pass what is not."""

import subprocess
import sys

import pytest

from tests.crash.inject import Aim, Mode
from tests.crash.powerloss import Loss, Outage
from tests.crash.scenario import Point, Verdict
from tests.crash.sweep import Sweep, report, share
from tests.crash.tools import REPOSITORY, Tools

pytestmark = pytest.mark.xdist_group("crash")

COUNTS = """
import os, apsw
from tests.crash import inject
from tests.crash.inject import Aim

def calls(act):
    inject.arm(Aim())
    act()
    return inject.count()

os.chdir(os.sys.argv[1])
db = apsw.Connection("db")
db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE entry (number INTEGER)").fetchall()
reader, writer = os.pipe()
fd = os.open("file", os.O_CREAT | os.O_RDWR, 0o600)
print(
    calls(lambda: db.execute("INSERT INTO entry VALUES (1)")),
    calls(lambda: os.write(writer, b"x")),
    calls(lambda: os.writev(fd, [b"one", b"two"])),
    calls(lambda: os.pwrite(fd, b"x", 9)),
    calls(lambda: os.fsync(fd)),
    calls(lambda: os.ftruncate(fd, 3)),
    calls(lambda: os.rename("file", "other")),
    calls(lambda: os.link("other", "third")),
    calls(lambda: os.unlink("other")),
    calls(lambda: os.mkdir("dir")),
    calls(lambda: os.rmdir("dir")),
    calls(lambda: os.close(os.open("fourth", os.O_CREAT | os.O_WRONLY, 0o600))),
    calls(lambda: os.close(os.open("fourth", os.O_RDONLY))),
    calls(lambda: os.read(reader, 1)),
    calls(lambda: os.fork() or os._exit(0)),
)
"""


def played(verdicts: list[Verdict]) -> set[tuple[int, Mode]]:
    return {
        (verdict.point.aim.at, verdict.point.aim.mode) for verdict in verdicts if verdict.killed
    }


def lost(losses: list[Loss]) -> set[str]:
    return {sentence for loss in losses for sentence in loss.broken}


def outages(name: str, *, images: int = 400) -> list[Outage]:
    return [Outage(story=f"tests.crash.toys:{name}", images=images, seed=seed) for seed in range(2)]


def test_every_write_of_python_and_of_sqlite_is_seen(
    tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("counts")
    argv = [sys.executable, "-c", COUNTS, str(place)]
    env = {"LD_PRELOAD": tools.library, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=True)
    # A commit of one page: the page's frame (header and body), the padding of the log, and one
    # fdatasync.
    commit, *others = map(int, done.stdout.split())
    assert 3 <= commit <= 8
    assert others == [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1]


def test_a_careful_program_survives_every_kill_point(toys: Sweep) -> None:
    points = toys.points("tests.crash.toys:careful")
    verdicts = toys.play(points)
    assert report(verdicts) == ""
    assert played(verdicts) == {(point.aim.at, point.aim.mode) for point in points}
    assert {point.aim.mode for point in points} == {Mode.BEFORE, Mode.AFTER, Mode.TORN}


def test_a_program_that_commits_too_late_is_caught_starting_a_call_twice(toys: Sweep) -> None:
    verdicts = toys.play(toys.points("tests.crash.toys:careless"))
    assert "the call started twice" in report(verdicts)


def test_a_shim_is_killed_by_its_name_and_nobody_else_is(toys: Sweep) -> None:
    points = toys.points("tests.crash.toys:with_shim", role="toy-shim")
    verdicts = toys.play(points)
    assert report(verdicts) == ""
    assert played(verdicts) == {(point.aim.at, point.aim.mode) for point in points}
    assert any(verdict.what.startswith("rename") for verdict in verdicts)


def test_a_point_beyond_the_last_call_kills_nobody(toys: Sweep) -> None:
    beyond = Point(scenario="tests.crash.toys:careful", aim=Aim(at=100_000, mode=Mode.BEFORE))
    assert [verdict.killed for verdict in toys.play([beyond])] == [False]


def test_a_share_is_the_same_every_time() -> None:
    points = [Point(scenario="s", aim=Aim(at=at, mode=Mode.BEFORE)) for at in range(1, 8)]
    assert share(points, of=30, seed=1) == share(points, of=30, seed=1)
    assert len(share(points, of=30, seed=1)) == 30


@pytest.mark.parametrize("name", ("diary", "letter", "gate"))
def test_what_is_synced_before_it_is_told_survives_every_power_loss(toys: Sweep, name: str) -> None:
    losses = toys.suffer(outages(name))
    assert lost(losses) == set()
    assert sum(loss.images for loss in losses) == 800


@pytest.mark.parametrize(
    ("name", "sentence"),
    (
        ("diary_unsynced", "the diary is damaged"),
        ("diary_unsynced", "an acknowledged entry is lost"),
        ("diary_late", "an acknowledged entry is lost"),
        ("letter_without_body", "the letter is damaged"),
        ("letter_without_name", "an acknowledged letter is lost"),
        ("gate_unsynced", "a call that started would start again"),
    ),
)
def test_what_is_not_synced_is_caught(toys: Sweep, name: str, sentence: str) -> None:
    assert sentence in lost(toys.suffer(outages(name)))

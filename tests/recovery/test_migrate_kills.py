"""`store migrate --from` is killed at every point.

At most one store is live, and running it again loses nothing.
"""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.core.errors import StoreProblem
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring import is_shared
from tests.crash.build import build
from tests.crash.inject import Aim, Control, Mode, Shot
from tests.crash.tools import REPOSITORY, Tools
from tests.e2e.shell import Document, Shell
from tests.postgres import Server

pytestmark = pytest.mark.timeout(1800)
SHARE = 6  # kill points, unless all of them are wanted
SCRIPT = '[ "$AUTO_APPROVAL" ] || exit 90; echo deployed >> effects'
MIGRATE = """
import sys
from adjourn.wiring.migration import migrate
from adjourn.wiring.shared import place_for
from tests.crash import inject
source, url, at, mode = sys.argv[1:]
place = place_for(url)
import adjourn.stores.postgres.store, adjourn.stores.sqlite.copy, adjourn.wiring.controller
inject.arm(inject.Aim(at=int(at), mode=inject.Mode(int(mode))))
migrate(source, place)
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build(tmp_path_factory.mktemp("crash-tools"))


class Moving:
    """A store of one machine with an approved task and an open ask, moved again and again from the same beginning."""

    def __init__(self, place: Path, server: Server, tools: Tools) -> None:
        place.mkdir()
        self.shell = Shell(place)
        self.shell.environment["XDG_STATE_HOME"] = str(place.with_name("state"))
        self._server = server
        self._library = tools.library
        self._control = Control(place.with_name("control"))
        self.approved = self.shell.paused("sh", "-c", SCRIPT)["task_id"]
        self.shell.adjourn("approve", self.shell.inbox()[0]["id"])
        self._directories = (self.shell.store, Path(self.shell.environment["XDG_STATE_HOME"]))
        # So that the log is kept, with something in it
        with contextlib.closing(SqliteStore(str(self.shell.store))):
            self.waiting = self.shell.paused("sh", "-c", SCRIPT)["task_id"]
            for directory in self._directories:
                shutil.copytree(
                    directory, directory.with_name(f"kept-{directory.name}"), symlinks=True
                )
        assert list(self.shell.place.glob("kept-*/*-wal"))

    def begin_anew(self) -> None:
        """Have the store be as it was, in the same directory.

        A copy in another would not be bound to this machine.
        """
        for directory in self._directories:
            for each in directory.iterdir():
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
            kept = directory.with_name(f"kept-{directory.name}")
            shutil.copytree(kept, directory, symlinks=True, dirs_exist_ok=True)
        (self.shell.place / "effects").unlink(missing_ok=True)

    def move(self, url: str, aim: Aim, *, is_refused: bool = False) -> Shot:
        """Move the store, and have whoever moves it die at one point."""
        self._control.aim(aim)
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                MIGRATE,
                str(self.shell.store),
                url,
                str(aim.at),
                str(int(aim.mode)),
            ],
            cwd=REPOSITORY,
            env=self.shell.environment
            | {"LD_PRELOAD": self._library, "INJECT_CONTROL": str(self._control.path)},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in {int(is_refused), -signal.SIGKILL}, done.stderr.decode()
        return self._control.shot(aim)

    def live(self, url: str) -> list[str]:
        """Return which of the two stores would start the approved task."""
        stores = []
        if not is_shared(str(self.shell.store)):
            with contextlib.suppress(StoreProblem):
                SqliteStore(str(self.shell.store)).close()
                stores.append("the directory")
        new = PostgresStore(url)
        with new.read() as view:
            stores += ["the database"] if view.queued(pool="default", limit=1) else []
        new.close()
        return stores

    @property
    def effects(self) -> list[str]:
        return self.shell.lines("effects")


@pytest.fixture
def moving(tmp_path: Path, postgres: Server, tools: Tools) -> Iterator[Moving]:
    moving = Moving(tmp_path / "work", postgres, tools)
    yield moving
    assert moving.shell.end() == {}


def test_no_kill_of_migrate_leaves_two_live_stores_or_loses_anything(
    moving: Moving, postgres: Server, sweep: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgres.empty_database() as url:
        counted = moving.move(url, Aim())
    aims = [
        Aim(at=at, mode=mode)
        for at in range(1, counted.calls + 1)
        for mode in (Mode.BEFORE, Mode.AFTER)
    ]
    last = aims[-80:]  # what comes before them is about reading, and the schema of the new one
    chosen = (
        aims
        if sweep == "full"
        else sorted(random.Random(5).sample(last, SHARE), key=lambda aim: aim.at)
    )
    killed = 0
    for aim in chosen:
        moving.begin_anew()
        with postgres.empty_database() as url:
            shot = moving.move(url, aim)
            killed += bool(shot.killed)
            assert len(moving.live(url)) <= 1, f"two stores are live after {aim}: {shot.what}"
            again = moving.shell.adjourn(
                "store", "migrate", "--from", ".adjourn", "--store", url, expect=None
            )
            assert again.code == 0 or "leads to a database already" in again.err, (
                aim,
                shot.what,
                again.err,
            )
            assert moving.live(url) == ["the database"]
            moving.shell.adjourn("worker", "--once")
            asks: list[Document] = moving.shell.inbox()
            assert ([ask["task_id"] for ask in asks], moving.effects) == (
                [moving.waiting],
                ["deployed"],
            ), (aim, shot.what)
    with capsys.disabled():
        print(f"\nmigrate: {killed} kills of {len(aims)} points")
    assert killed > 0.8 * len(chosen)


DIES_AT_THE_COMMIT = """
import os, sys
from adjourn.stores.postgres.store import PostgresStore
from adjourn.wiring.migration import migrate
from adjourn.wiring.shared import place_for
PostgresStore.take_in = lambda *_, **__: os.kill(os.getpid(), 9)
migrate(sys.argv[1], place_for(sys.argv[2]))
"""


def test_an_interrupted_move_is_told_and_goes_on_with_the_command_that_is_named(
    moving: Moving, postgres: Server
) -> None:
    with postgres.empty_database() as url:
        moving.shell.run(
            sys.executable,
            "-c",
            DIES_AT_THE_COMMIT,
            str(moving.shell.store),
            url,
            expect=-signal.SIGKILL,
        )
        assert moving.live(url) == []
        refused = ""
        for words in (("tasks",), ("run", "--", "true"), ("worker", "--once")):
            refused = moving.shell.adjourn(*words, expect=1).err
            assert "is being moved into a database, and the move was not finished" in refused
        moving.shell.line(refused[refused.index("adjourn store migrate") :].splitlines()[0])
        moving.shell.adjourn("worker", "--once")
        assert moving.effects == ["deployed"]


def test_a_move_into_a_database_with_other_tasks_leaves_the_directory_as_it_was(
    moving: Moving, postgres: Server
) -> None:
    with postgres.empty_database() as url:
        moving.shell.adjourn("run", "--store", url, "--", "true")
        error = moving.shell.adjourn(
            "store", "migrate", "--from", ".adjourn", "--store", url, expect=4
        ).err
        assert "keeps something else already" in error
        moving.shell.adjourn("worker", "--once")
        assert moving.effects == ["deployed"]


def test_no_kill_of_a_move_that_is_refused_loses_anything(
    moving: Moving, postgres: Server, sweep: str
) -> None:
    with postgres.empty_database() as url:
        moving.shell.adjourn("run", "--store", url, "--", "true")
        counted = moving.move(url, Aim(), is_refused=True)
        aims = [Aim(at=at, mode=Mode.AFTER) for at in range(1, counted.calls + 1)]
        last = aims[-40:]  # what comes before them is about reading
        chosen = (
            aims
            if sweep == "full"
            else sorted(random.Random(5).sample(last, SHARE), key=lambda aim: aim.at)
        )
        for aim in chosen:
            moving.begin_anew()
            shot = moving.move(url, aim, is_refused=True)
            again = moving.shell.adjourn(
                "store", "migrate", "--from", ".adjourn", "--store", url, expect=4
            )
            assert "keeps something else already" in again.err, (aim, shot.what)
            moving.shell.adjourn("worker", "--once")
            tasks = [ask["task_id"] for ask in moving.shell.inbox()]
            assert (tasks, moving.effects) == ([moving.waiting], ["deployed"]), (aim, shot.what)

"""A backup is copied over the database while the store is in use, or beside its log.

Nothing starts twice, nothing is acknowledged that is lost, and no worker leaves as if all were done.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from adjourn.core.errors import StoreDamaged, StoreOlder
from adjourn.stores.sqlite.binding import Home
from adjourn.stores.sqlite.store import SCHEMA, SqliteStore
from tests.e2e.shell import Shell, until
from tests.recovery.test_lost_log import note
from tests.recovery.workers import approved, states

pytestmark = pytest.mark.one_machine("it copies over the file of the database")

Way = Callable[[Path, Path], None]


def copied_over(backup: Path, database: Path) -> None:
    """As `cp backup.db adjourn.db`."""
    shutil.copyfile(backup, database)


def changed_blocks(backup: Path, database: Path) -> None:
    """As `rsync --inplace`: only blocks that are different are written, the size comes last."""
    content = backup.read_bytes()
    with database.open("r+b") as file:
        for begin in range(0, len(content), 8192):
            block = content[begin : begin + 8192]
            file.seek(begin)
            if file.read(8192) != block:
                file.seek(begin)
                file.write(block)
        file.truncate(len(content))
    times = backup.stat()
    os.utime(database, ns=(times.st_atime_ns, times.st_mtime_ns))


def restored_by_sqlite(backup: Path, database: Path) -> None:
    """As `sqlite3 adjourn.db '.restore backup.db'`: a transaction like any other."""
    source, target = apsw.Connection(str(backup)), apsw.Connection(str(database))
    with target.backup("main", source, "main") as copy:
        copy.step(-1)
    source.close()
    target.close()


WAYS: list[Way] = [copied_over, changed_blocks, restored_by_sqlite]


class Filled:
    """A store with a backup, and commits since then: in the log, and in the database."""

    def __init__(self, place: Path, commits: int) -> None:
        self.home = Home(directory=str(place / "state"))
        self.root = place / ".adjourn"
        self.backup = place / "backup.db"
        self.store = self.open()
        note(self.store, "first")
        self.store.back_up(str(self.backup))
        for number in range(commits):
            note(self.store, f"later-{number}")

    @property
    def database(self) -> Path:
        return self.root / "adjourn.db"

    def checkpoint(self, mode: str) -> None:
        """Do what another program may do: write the first page, and bring the log into the file."""
        other = apsw.Connection(str(self.database))
        other.execute(f"PRAGMA user_version = {SCHEMA}")
        other.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        other.close()

    def open(self) -> SqliteStore:
        return SqliteStore(str(self.root), home=self.home)


# So many that all is in the log, that some is in the database, and that the log begins again
@pytest.fixture(params=[1, 8, 40])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Filled:
    return Filled(tmp_path, request.param)


@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_has_it_open_changes_nothing_more(filled: Filled, way: Way) -> None:
    way(filled.backup, filled.database)
    with pytest.raises((StoreDamaged, StoreOlder)):
        filled.store.require_in_place()
    for _ in range(2):
        with pytest.raises((StoreDamaged, StoreOlder)):
            note(filled.store, "second")


@pytest.mark.parametrize("way", [copied_over, changed_blocks])
def test_nothing_is_acknowledged_that_was_overwritten_meanwhile(filled: Filled, way: Way) -> None:
    def change() -> None:
        with filled.store.change() as tx:
            tx.keep_shared_document("x", b"x")
            way(filled.backup, filled.database)

    with pytest.raises(StoreDamaged, match="may be lost"):
        change()


@pytest.mark.parametrize("way", WAYS)
def test_a_new_process_opens_no_mix_of_two_databases(filled: Filled, way: Way) -> None:
    way(filled.backup, filled.database)
    with pytest.raises((StoreDamaged, StoreOlder)):
        note(filled.open(), "second")
    with pytest.raises((StoreDamaged, StoreOlder)):
        filled.open().require_ours()


def test_who_has_it_open_does_not_go_on_with_another_database(tmp_path: Path) -> None:
    """The log was empty, so that whoever comes next finds a whole database, only another one."""
    filled = Filled(tmp_path, 8)
    filled.checkpoint("TRUNCATE")
    shutil.copyfile(filled.database, tmp_path / "raw.db")
    note(filled.store, "later")
    filled.checkpoint("TRUNCATE")
    filled.store.require_in_place()
    copied_over(tmp_path / "raw.db", filled.database)
    with pytest.raises(StoreOlder):
        filled.open().require_ours()
    with pytest.raises(StoreDamaged):
        note(filled.store, "second")


@pytest.mark.parametrize("mode", ["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
def test_a_checkpoint_of_another_program_is_not_taken_for_an_overwritten_file(
    filled: Filled, mode: str
) -> None:
    """As a program does that replicates the database."""
    for number in range(3):
        filled.checkpoint("PASSIVE")
        filled.checkpoint(mode)
        filled.store.require_in_place()
        note(filled.store, f"second-{number}")
        note(filled.open(), f"third-{number}")


def test_what_only_touches_the_file_between_two_commands_does_no_harm(tmp_path: Path) -> None:
    filled = Filled(tmp_path, 8)
    filled.store.close()
    for name in ("touched", "again"):
        os.utime(filled.database)
        filled.database.chmod(0o600)
        store = filled.open()
        note(store, name)
        store.close()


def test_an_older_copy_of_the_file_alone_is_noticed_beside_the_newer_log(tmp_path: Path) -> None:
    """A plain copy of `adjourn.db`, which has the head that the file has now."""
    filled = Filled(tmp_path, 20)
    shutil.copyfile(filled.database, tmp_path / "raw.db")
    for number in range(20):
        note(filled.store, f"more-{number}")
    filled.store.close()
    raw, now = (tmp_path / "raw.db").read_bytes(), filled.database.read_bytes()
    assert raw[:100] == now[:100]
    assert raw != now
    copied_over(tmp_path / "raw.db", filled.database)
    with pytest.raises(StoreDamaged):
        filled.open()


COPY = {
    "cp": "cp monday.db .adjourn/adjourn.db",
    "dd": "dd if=monday.db of=.adjourn/adjourn.db bs=8192 conv=notrunc status=none",
    "restore": "python3 -c 'import sqlite3 as s;"
    's.connect("monday.db").backup(s.connect(".adjourn/adjourn.db", timeout=30))\'',
}


@pytest.mark.parametrize("way", COPY)
def test_a_worker_whose_store_is_overwritten_leaves_and_says_so(
    shell: Shell, way: str, sweep: str
) -> None:
    """What it says helps: with it the store goes on, and nothing has run twice or is lost."""
    count = {"ci": 16, "full": 250}[sweep]
    command = 'echo "$ADJOURN_TASK_ID" >> effects; [ "$(wc -l < effects)" -lt 4 ] || sleep 0.5'
    tasks = approved(shell, count, "sh", "-c", command)
    shell.adjourn("store", "backup", "monday.db")
    with shell.start("worker", "--once", stdout=subprocess.DEVNULL) as worker:
        until(lambda: len(shell.lines("effects")) > 3, what="it is busy")
        shell.line(COPY[way])
        err = worker.communicate(timeout=60)[1].decode()
    assert worker.returncode in {1, 5}, err
    shell.adjourn("worker", "--once", expect=worker.returncode)

    # What is shown can be pasted
    found = re.findall(r"(?:rm|adjourn store accept) .*", err.splitlines()[-1])
    assert found, err
    helps = found[-1]
    for _ in range(2):
        shell.line(helps + " --yes", expect=None)
        if shell.adjourn("worker", "--once", expect=None).code == 0:
            break
    ran = Counter(shell.lines("effects"))
    asks = shell.json("inbox", "--limit", "1000")["asks"]
    uncertain = {ask["task_id"] for ask in asks if ask["kind"] == "uncertain"}
    assert max(ran.values()) == 1
    assert set(tasks) <= set(ran) | uncertain
    assert Counter(states(shell, tasks))["queued"] == 0
    print(f"{way}: {len(ran)} of {count} ran, {len(uncertain)} uncertain, 0 double")

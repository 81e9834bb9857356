"""What the SQLite store promises beyond the contract.

Whose it is, where it is, and what it does when the disk fails.
"""

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import apsw
import pytest

from adjourn.core.ask import AskKind
from adjourn.core.errors import AdjournError, NotFound, StoreDamaged, StoreProblem, StoreRefused
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import PauseReason, RunState, Wish
from adjourn.core.trail.events import first_broken
from adjourn.ports.store import Turn
from adjourn.stores.sqlite import directory
from adjourn.stores.sqlite.directory import filesystem_kind
from adjourn.stores.sqlite.store import SCHEMA, SqliteStore
from adjourn.testing.open_stores import is_awake
from adjourn.testing.values import a_call, a_run, a_task, an_ask, an_event
from tests.contract.disks import fill, make_read_only, small_disk
from tests.needs import missing

NOBODY = 65534


@contextmanager
def opened(root: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(root))
    try:
        yield store
    finally:
        store.close()


def add_task(store: SqliteStore, task_id: str = "task-a", **words: str) -> None:
    with store.change() as tx:
        tx.add_task(a_task(task_id, **words))
        tx.append(an_event(task_id))


def ids(store: SqliteStore) -> list[str]:
    with store.read() as view:
        return [task.id for task in reversed(view.tasks(limit=1000))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return where a store may be made."""
    return tmp_path / ".adjourn"


@pytest.fixture
def filled(root: Path) -> Path:
    """Return a store with one task, which nobody has open."""
    with opened(root) as store:
        add_task(store)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return every file that holds something.

    What coordinates processes while they run does not.
    """
    passing = {"write.lock", "adjourn.db-shm"}
    files = {
        path.name: path.read_bytes()
        for path in root.iterdir()
        if path.is_file() and path.name not in passing
    }
    return {name: content for name, content in files.items() if content}


# --- its directory --------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777], ids=oct)
def test_everything_is_private_whatever_the_umask(root: Path, tmp_path: Path, umask: int) -> None:
    """A-R82: access to checkpoints is access to the store's files."""
    before = os.umask(umask)
    try:
        with opened(root) as store:
            ear = store.listen()
            add_task(store)
            store.back_up(str(tmp_path / "backup.db"))
            found = {
                path.name: path.lstat().st_mode
                for path in [root, tmp_path / "backup.db", *root.rglob("*")]
            }
            ear.close()
    finally:
        os.umask(before)
    wrong = {
        name: oct(mode)
        for name, mode in found.items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    }
    assert wrong == {}
    assert {"adjourn.db", "adjourn.db-wal", "write.lock", ".gitignore", "wake"} <= set(found)


def test_the_directory_hides_itself_from_git_except_for_what_people_write(root: Path) -> None:
    """A-R86"""
    with opened(root):
        assert (root / ".gitignore").read_text().splitlines() == [
            "*",
            "!policy.toml",
            "!supervision.yaml",
        ]


def test_a_directory_that_came_with_the_project_is_furnished_and_made_private(root: Path) -> None:
    """A clone brings `.adjourn/policy.toml` along, with the modes of any other directory."""
    root.mkdir(mode=0o755)
    (root / "policy.toml").write_text("# rules\n")
    with opened(root) as store:
        add_task(store)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert (root / ".gitignore").exists()
    assert (root / "policy.toml").read_text() == "# rules\n"


HALF_MADE = [[], [".gitignore"], ["write.lock"], ["adjourn.db"], ["write.lock", "adjourn.db"]]


@pytest.mark.parametrize("mode", [0o700, 0o755], ids=oct)
@pytest.mark.parametrize("left", HALF_MADE, ids=range(len(HALF_MADE)))
def test_a_store_that_was_left_half_made_is_completed(
    root: Path, left: list[str], mode: int
) -> None:
    root.mkdir(mode=mode)
    for name in left:
        (root / name).touch(mode=0o600)
    with opened(root) as store:
        add_task(store)
        assert ids(store) == ["task-a"]
    assert (root / ".gitignore").exists()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_directory_with_things_of_its_own_is_used_and_otherwise_left_alone(
    tmp_path: Path,
) -> None:
    """Whoever names their home as the store shall not find it hidden from git, or closed to others."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "letter").write_text("dear")
    with opened(home) as store:
        add_task(store)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert not (home / ".gitignore").exists()
    assert stat.S_IMODE((home / "adjourn.db").stat().st_mode) == 0o600


def test_a_symlinked_directory_is_refused(root: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "elsewhere"):
        pass
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreRefused, match="symbolic link"):
        SqliteStore(str(root))


def test_a_dangling_symlink_is_refused_and_not_followed(root: Path, tmp_path: Path) -> None:
    root.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreRefused, match="symbolic link"):
        SqliteStore(str(root))
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["adjourn.db", "write.lock"])
def test_a_symlink_inside_the_directory_is_not_followed(
    root: Path, tmp_path: Path, name: str
) -> None:
    root.mkdir(mode=0o700)
    (root / name).symlink_to(tmp_path / "victim")
    with pytest.raises(StoreProblem):
        SqliteStore(str(root))
    assert not (tmp_path / "victim").exists()


def test_a_store_below_a_symlinked_directory_works(tmp_path: Path) -> None:
    """Homes and temporary directories are symlinks on many machines.

    Only the store itself must be none.
    """
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    with opened(tmp_path / "alias" / ".adjourn") as store:
        add_task(store)
    with opened(tmp_path / "real" / ".adjourn") as store:
        assert ids(store) == ["task-a"]


def test_a_file_in_the_place_of_the_directory_is_refused(root: Path) -> None:
    root.write_text("mine")
    with pytest.raises(StoreRefused, match="not a directory"):
        SqliteStore(str(root))
    assert root.read_text() == "mine"


def test_a_store_in_a_directory_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        SqliteStore(str(tmp_path / "nowhere" / ".adjourn"))


def test_somebody_elses_directory_is_refused(root: Path) -> None:
    if os.geteuid():
        missing("the right to give a directory away")
    with opened(root) as store:
        add_task(store)
    before = contents(root)
    os.chown(root, NOBODY, NOBODY)
    with pytest.raises(
        StoreRefused, match=f"belongs to uid {NOBODY}, and you are uid {os.geteuid()}"
    ):
        SqliteStore(str(root))
    assert contents(root) == before


# --- its filesystem -------------------------------------------------------------------------------

MOUNTS = """\
22 28 0:21 / /proc rw,nosuid shared:14 - proc proc rw
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
90 28 0:44 / /mnt/share\\040of\\040us rw,relatime shared:50 master:1 - nfs4 server:/export rw,vers=4.2
91 28 0:45 / /mnt/win rw - cifs //server/share rw
92 28 0:46 / /mnt/ssh rw - fuse.sshfs me@host: rw
93 28 0:44 /sub /mnt/again rw - nfs4 server:/export rw
94 28 0:47 / /mnt/odd rw - - - rw
"""


@pytest.mark.parametrize(
    ("device", "kind"),
    {
        (0, 44): "nfs4",
        (0, 45): "cifs",
        (0, 46): "fuse.sshfs",
        (254, 1): "ext4",
        (0, 21): "proc",
        (9, 9): "",
        (0, 4): "",
    }.items(),
    ids=str,
)
def test_the_kind_of_a_filesystem_is_read_from_the_mounts(
    tmp_path: Path, device: tuple[int, int], kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert filesystem_kind(os.makedev(*device), mounts=str(mounts)) == kind


def test_where_mounts_cannot_be_read_the_kind_is_unknown(tmp_path: Path) -> None:
    assert filesystem_kind(os.makedev(0, 44), mounts=str(tmp_path / "none")) == ""


def test_this_machine_knows_the_kind_of_its_own_disks(tmp_path: Path) -> None:
    assert filesystem_kind(os.stat("/proc").st_dev) == "proc"
    assert filesystem_kind(tmp_path.stat().st_dev) not in {"nfs", "nfs4"}


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "virtiofs"]
)
def test_a_network_filesystem_is_refused_before_anything_is_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"90 28 {os.major(device)}:{os.minor(device)} / /mnt rw - {kind} server:/export rw\n"
    )
    monkeypatch.setattr(directory, "mounted", partial(directory.mounted, mounts=str(mounts)))
    with pytest.raises(StoreRefused, match=rf"network filesystem \({kind}\)"):
        SqliteStore(str(root))
    assert not root.exists()


# --- its file -------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused_before_anything_is_written(filled: Path) -> None:
    with apsw.Connection(str(filled / "adjourn.db")) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}").fetchall()
    db.close()
    before = contents(filled)
    with pytest.raises(
        StoreProblem, match=f"has schema {SCHEMA + 1}, and this program knows {SCHEMA}"
    ) as refusal:
        SqliteStore(str(filled))
    assert "newer adjourn" in refusal.value.way_out
    assert contents(filled) == before


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE theirs (x)",
        "CREATE TABLE t (x); PRAGMA user_version = 1",
        "CREATE TABLE t (x); PRAGMA application_id = 7",
    ],
    ids=["without a name", "with a version", "with a name"],
)
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused(
    root: Path, statements: str, journal: str
) -> None:
    root.mkdir(mode=0o700)
    db = sqlite3.connect(root / "adjourn.db")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.executescript(statements)
    db.close()
    before = contents(root)
    with pytest.raises(StoreRefused, match="of another program"):
        SqliteStore(str(root))
    assert contents(root)["adjourn.db"] == before["adjourn.db"]


def _garbage_at_the_start(file: Path) -> None:
    file.write_bytes(b"garbage!" * 2048)


def _garbage_in_the_middle(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + os.urandom(len(whole) - 8192))


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:8192])


def _a_text_file(file: Path) -> None:
    file.write_text("dear diary\n" * 100)


@pytest.mark.parametrize(
    "damage", [_garbage_at_the_start, _garbage_in_the_middle, _cut_off, _a_text_file]
)
def test_a_damaged_file_is_told_to_be_damaged(filled: Path, damage: "partial[None]") -> None:
    with apsw.Connection(str(filled / "adjourn.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    (filled / "adjourn.db-wal").unlink(missing_ok=True)
    damage(filled / "adjourn.db")
    with pytest.raises(StoreDamaged, match="damaged database") as refusal:
        _use(filled)
    assert "backup" in refusal.value.way_out


def _use(root: Path) -> None:
    with opened(root) as store:
        ids(store)
        add_task(store, "task-b")


def test_a_commit_waits_for_the_disk_and_the_log_stays_short(root: Path) -> None:
    """An acknowledgement is printed only after the commit is on disk."""
    with opened(root) as store:
        assert store._db.number("synchronous") == 2
        assert store._db.all("PRAGMA journal_mode") == [("wal",)]
        assert store._db.number("page_size") == 8192
        for number in range(200):
            add_task(store, f"task-{number}", message="x" * 4000)
        assert (root / "adjourn.db-wal").stat().st_size < 4_000_000


CHECKED = {
    ("task", "state"): TaskState,
    ("task", "wish"): Wish,
    ("run", "state"): RunState,
    ("run", "pause_reason"): PauseReason,
    ("call", "state"): CallState,
    ("ask", "state"): AskState,
    ("ask", "kind"): AskKind,
}


@pytest.mark.parametrize(("table", "column"), CHECKED)
def test_the_database_knows_the_same_words(filled: Path, table: str, column: str) -> None:
    with opened(filled) as store:
        ((text,),) = store._db.all("SELECT sql FROM sqlite_schema WHERE name = ?", table)
    (words,) = re.findall(rf"\b{column} [^;]*?CHECK \(\s*{column} IN \(([^)]*)\)", str(text))
    assert set(re.findall(r"'(\w+)'", words)) == set(CHECKED[table, column])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE task SET state = 'sleeping'",
        "UPDATE task SET next_call = NULL",
        "UPDATE task SET wish = 'rest'",
        "UPDATE ask SET state = 'answered'",
        "UPDATE ask SET settled_at = 1",
        "UPDATE task SET runs = 'many'",
    ],
)
def test_the_database_refuses_what_no_rule_allows(filled: Path, statement: str) -> None:
    with opened(filled) as store, store.change() as tx:
        tx.add_ask(an_ask())
    db = apsw.Connection(str(filled / "adjourn.db"))
    with pytest.raises(apsw.ConstraintError):
        db.execute(statement).fetchall()
    db.close()


def test_nothing_of_a_forgotten_task_is_left_but_its_links(filled: Path) -> None:
    with opened(filled) as store:
        empty = _counts(store)
        with store.change() as tx:
            tx.add_task(a_task("task-b", state=TaskState.FAILED))
            tx.add_run(a_run("task-b"))
            tx.add_call(a_call("task-b"))
            tx.add_ask(an_ask("ask-b", "task-b"))
            tx.add_turn(Turn(run_id="task-b.1", key="ask:x", thing="ask-b", left_open=True))
            tx.append(an_event("task-b"))
        with store.change() as tx:
            tx.forget_task("task-b")
        assert _counts(store) == empty | {"event": empty["event"] + 1}


def _counts(store: SqliteStore) -> dict[str, int]:
    tables = [
        name
        for (name,) in store._db.all(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    return {name: store._db.all(f"SELECT count(*) FROM {name}")[0][0] for name in tables}  # noqa: S608 names of our own


# --- its disk -------------------------------------------------------------------------------------


def test_a_read_only_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        with opened(disk / ".adjourn") as store:
            add_task(store)
        before = contents(disk / ".adjourn")
        make_read_only(disk)
        with pytest.raises(StoreProblem, match="read-only") as refusal:
            _use(disk / ".adjourn")
        assert refusal.value.way_out
        assert contents(disk / ".adjourn") == before


def test_no_store_can_be_made_on_a_read_only_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        make_read_only(disk)
        with pytest.raises(StoreProblem, match=r"(?i)read-only"):
            SqliteStore(str(disk / ".adjourn"))


@contextmanager
def somebody_else() -> Iterator[None]:
    """Be nobody for a while."""
    if os.geteuid():
        missing("the right to become somebody else")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o500, 0o400, 0o000], ids=oct)
def test_a_directory_that_may_not_be_written_is_told(mode: int) -> None:
    with TemporaryDirectory() as home:
        os.chown(home, NOBODY, NOBODY)
        root = Path(home) / ".adjourn"
        root.mkdir()
        (root / ".gitignore").write_text("*\n")
        os.chown(root, NOBODY, NOBODY)
        root.chmod(mode)
        with (
            somebody_else(),
            pytest.raises(StoreRefused, match=r"cannot be used: Permission denied") as refusal,
        ):
            SqliteStore(str(root))
        assert "--store" in refusal.value.way_out
        assert [path.name for path in root.iterdir()] == [".gitignore"]


def test_no_store_can_be_made_where_one_may_not_write() -> None:
    with TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        with (
            somebody_else(),
            pytest.raises(StoreRefused, match=r"cannot be used: Permission denied"),
        ):
            SqliteStore(str(Path(home) / ".adjourn"))


@pytest.mark.parametrize("room", [0, 4096, 40_000], ids=str)
def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path, room: int) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk, opened(disk / ".adjourn") as store:
        add_task(store)
        filler = fill(disk, but=room)
        with pytest.raises(StoreProblem, match="full") as refusal:
            _add_until_it_fails(store)
        assert "space" in refusal.value.sentence
        assert refusal.value.way_out == f"df -h {disk / '.adjourn'}"
        kept = ids(store)
        with store.read() as view:
            assert first_broken(view.trail()) is None
        filler.unlink()
        add_task(store, "task-z")
        assert ids(store) == [*kept, "task-z"]
        assert kept == ["task-a", *(f"task-{number}" for number in range(len(kept) - 1))]


def _add_until_it_fails(store: SqliteStore) -> None:
    """Keep each task only if the store said so."""
    for number in range(1000):
        before = ids(store)
        try:
            add_task(store, f"task-{number}", message="x" * 3000)
        except AdjournError:
            assert ids(store) == before
            raise


def test_a_full_disk_is_told_to_whoever_opens_the_store(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        with opened(disk / ".adjourn") as store:
            add_task(store)
        filler = fill(disk)
        with pytest.raises(StoreProblem, match=r"full|No space"):
            _use(disk / ".adjourn")
        filler.unlink()
        with opened(disk / ".adjourn") as store:
            assert ids(store) == ["task-a"]


def test_a_store_that_cannot_be_made_for_want_of_space_can_be_made_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=512) as disk:
        filler = fill(disk)
        with pytest.raises(StoreProblem, match=r"full|No space"):
            _use(disk / ".adjourn")
        filler.unlink()
        with opened(disk / ".adjourn") as store:
            add_task(store)
        assert stat.S_IMODE((disk / ".adjourn").stat().st_mode) == 0o700
        assert (disk / ".adjourn" / ".gitignore").read_text().startswith("*\n")


# --- backup ---------------------------------------------------------------------------------------


def test_a_backup_is_a_store_that_can_be_used(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as store:
        add_task(store, "task-b")
        store.back_up(str(tmp_path / "backup.db"))
        add_task(store, "task-c")
    assert [path.name for path in tmp_path.glob("backup.db*")] == ["backup.db"]
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    shutil.copy(tmp_path / "backup.db", restored / "adjourn.db")
    with opened(restored) as store:
        assert ids(store) == ["task-a", "task-b"]
        add_task(store, "task-d")
        assert ids(store) == ["task-a", "task-b", "task-d"]
        assert store._db.all("PRAGMA journal_mode") == [("wal",)], "it keeps its promises, too"
        with store.read() as view:
            assert first_broken(view.trail()) is None


def test_a_backup_is_of_one_moment_while_others_write(filled: Path, tmp_path: Path) -> None:
    enough = Event()
    writer = Thread(target=_write_until, args=(filled, enough))
    writer.start()
    try:
        with opened(filled) as store:
            for number in range(10):
                store.back_up(str(tmp_path / f"backup-{number}.db"))
    finally:
        enough.set()
        writer.join()
    counts = []
    for number in range(10):
        home = tmp_path / f"home-{number}"
        home.mkdir(mode=0o700)
        (tmp_path / f"backup-{number}.db").rename(home / "adjourn.db")
        with opened(home) as store, store.read() as view:
            assert first_broken(view.trail()) is None
            counts.append(len(view.tasks(limit=100_000)))
            assert len(view.trail()) == counts[-1]
    assert counts == sorted(counts)
    assert counts[-1] > 1


def _write_until(root: Path, enough: Event) -> None:
    with opened(root) as store:
        number = 0
        while not enough.is_set():
            add_task(store, f"written-{number}")
            number += 1


def test_a_backup_overwrites_nothing(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    with opened(filled) as store, pytest.raises(AdjournError):
        store.back_up(str(target))
    assert target.read_text() == "mine"


def test_a_backup_into_nowhere_is_told(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as store, pytest.raises(AdjournError):
        store.back_up(str(tmp_path / "nowhere" / "backup.db"))


def test_a_backup_that_does_not_fit_leaves_no_file_that_looks_like_one(
    filled: Path, tmp_path: Path
) -> None:
    with opened(filled) as store:
        for number in range(20):
            add_task(store, f"task-{number}", message="x" * 20_000)
        with small_disk(tmp_path / "disk", kilobytes=100) as disk:
            with pytest.raises(StoreProblem, match="full"):
                store.back_up(str(disk / "backup.db"))
            assert list(disk.iterdir()) == []


# --- wake-ups -------------------------------------------------------------------------------------


def test_whoever_is_woken_sees_what_woke_them(root: Path) -> None:
    """A wake-up after the commit: one that comes before would lose decisions."""
    with opened(root) as writer, opened(root) as reader:
        ear = reader.listen()
        busy = Thread(target=_add_fifty, args=(writer,))
        busy.start()
        while len(ids(reader)) < 50:
            assert is_awake(ear, within=10)
            ear.drain()
        busy.join()
        ear.close()


def _add_fifty(store: SqliteStore) -> None:
    for number in range(50):
        add_task(store, f"task-{number}")


def test_a_closed_ear_leaves_nothing_behind(root: Path) -> None:
    with opened(root) as store:
        ear = store.listen()
        assert len(list((root / "wake").iterdir())) == 1
        ear.close()
        assert list((root / "wake").iterdir()) == []


def test_the_sockets_of_dead_listeners_are_removed(root: Path) -> None:
    listens = "import sys; from adjourn.stores.sqlite.store import SqliteStore; ear = SqliteStore(sys.argv[1]).listen()"
    for _ in range(3):
        subprocess.run(
            [sys.executable, "-c", f"{listens}; import os; os._exit(9)", root], check=False
        )
    assert len(list((root / "wake").iterdir())) == 3
    with opened(root) as store:
        ear = store.listen()
        add_task(store)
        assert is_awake(ear)
        assert len(list((root / "wake").iterdir())) == 1
        ear.close()


def test_a_wake_up_reaches_a_store_that_lies_deep(tmp_path: Path) -> None:
    """The address of a socket has 107 bytes; a path may have 4,000."""
    deep = tmp_path / ("d" * 200) / ("e" * 200)
    deep.mkdir(parents=True)
    with opened(deep / ".adjourn") as store:
        ear = store.listen()
        add_task(store)
        assert is_awake(ear)
        ear.close()


def test_where_no_socket_can_have_a_name_the_listener_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever polls it checks unwoken, and nothing is lost."""
    monkeypatch.setattr(
        "adjourn.stores.sqlite.store._address", lambda _folder, name: f"/no/proc/here/{name}"
    )
    with opened(root) as store:
        listener = store.listen()
        assert listener.trouble
        assert os.listdir(root / "wake") == []
        add_task(store)
        assert not is_awake(listener)
        listener.close()


def test_strangers_in_the_wake_directory_harm_nobody(root: Path) -> None:
    with opened(root) as store:
        ear = store.listen()
        (root / "wake" / "a file").write_text("hello")
        (root / "wake" / "a directory").mkdir()
        (root / "wake" / "a dangling link").symlink_to("nowhere")
        add_task(store)
        assert is_awake(ear)
        assert ids(store) == ["task-a"]
        ear.close()


def test_a_wake_directory_that_cannot_be_used_does_not_undo_what_was_saved(root: Path) -> None:
    with opened(root) as store:
        add_task(store)
        (root / "wake").write_text("in the way")
        add_task(store, "task-b")
        assert ids(store) == ["task-a", "task-b"]

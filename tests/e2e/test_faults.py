"""Stores that cannot be used: a sentence, the right exit code, nothing written, nothing lost."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.core.backoff import pause_before_try
from adjourn.core.task import TRIES
from tests.contract.disks import fill, make_read_only, shell_on_small_disk
from tests.e2e.shell import ADJOURN, Done, Shell
from tests.needs import missing, needs

NOBODY = 65534


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shell]:
    """Return a shell on a small disk of its own."""
    with shell_on_small_disk(tmp_path / "disk", kilobytes=1024) as shell:
        yield shell


def refused(
    shell: Shell, code: int, *sentence: str, verbs: tuple[tuple[str, ...], ...] = ()
) -> None:
    """Insist that every kind of verb is refused in the same way, for people and for machines."""
    for words in verbs or (
        ("inbox",),
        ("tasks",),
        ("approve", "x"),
        ("resume", "x"),
        ("run", "--", "touch", "effects"),
    ):
        done = shell.adjourn(*words, expect=code)
        for part in (*sentence, "try: "):
            assert part in done.err, (words, done.err)
        at = words.index("--") if "--" in words else len(words)
        failed = shell.adjourn(*words[:at], "--output", "json", *words[at:], expect=code)
        assert failed.doc["error"]["way_out"]
    assert not (shell.place / "effects").exists()


@pytest.mark.one_machine("it is about the file of the database")
def test_a_newer_store_is_refused_before_anything_is_written(shell: Shell) -> None:
    shell.paused(shell.agent("approved.sh"))
    execute(shell.store / "adjourn.db", "PRAGMA user_version = 99")
    before = {
        path.name: path.stat().st_mtime_ns
        for path in shell.store.iterdir()
        if path.name.startswith("adjourn.db")
    }
    refused(shell, 1, "schema 99", "pip install -U adjourn")
    after = {
        path.name: path.stat().st_mtime_ns
        for path in shell.store.iterdir()
        if path.name.startswith("adjourn.db")
    }
    assert before["adjourn.db"] == after["adjourn.db"]


@pytest.mark.one_machine("it is about the file of the database")
def test_a_database_of_another_program_is_refused(shell: Shell) -> None:
    shell.store.mkdir(mode=0o700)
    execute(shell.store / "adjourn.db", "CREATE TABLE precious (x)")
    refused(shell, 5, "another program")
    db = sqlite3.connect(shell.store / "adjourn.db")
    assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    db.close()


def execute(path: Path, statement: str) -> None:
    """Run a statement in a database, as another program would."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement)
    db.close()


@pytest.mark.one_machine("it is about the file of the database")
def test_a_damaged_store_says_so(shell: Shell) -> None:
    shell.paused(shell.agent("approved.sh"))
    for path in shell.store.glob("adjourn.db*"):
        path.unlink()
    (shell.store / "adjourn.db").write_bytes(
        b"this is no database, and long enough to be sure of it" * 20
    )
    refused(shell, 1, "damaged", "backup")


@pytest.mark.parametrize("left", [1, 100, 511])
@pytest.mark.one_machine("it is about the file of the database")
def test_what_is_left_of_a_store_is_not_taken_for_a_new_one(shell: Shell, left: int) -> None:
    """Else the inbox would say that nothing waits."""
    shell.paused(shell.agent("approved.sh"))
    os.truncate(shell.store / "adjourn.db", left)
    refused(shell, 1, "not a whole database", "backup")


@pytest.mark.one_machine("it is about the file of the database")
def test_an_empty_database_beside_a_log_is_not_taken_for_a_new_one(shell: Shell) -> None:
    shell.paused(shell.agent("approved.sh"))
    os.truncate(shell.store / "adjourn.db", 0)
    assert (shell.store / "adjourn.db-wal").stat().st_size
    refused(shell, 1, "not a whole database", "backup")


@pytest.mark.one_machine("it is about the file of the database")
def test_an_empty_database_is_a_new_store(shell: Shell) -> None:
    """It is how one begins: whoever makes it may be killed before the first table."""
    shell.store.mkdir(mode=0o700)
    (shell.store / "adjourn.db").touch()
    assert shell.inbox() == []


@pytest.mark.parametrize("limit", [8, 11, 14, 16, 17, 18, 20, 22])
def test_too_few_descriptors_are_told_in_a_sentence(shell: Shell, limit: int) -> None:
    shell.adjourn("run", "--", "true")
    bash = needs("bash")
    done = shell.run(
        bash, "-c", f"ulimit -n {limit}; exec adjourn run -- touch effects", expect=None
    )
    done.must(1)
    assert "too many" in (done.err + done.out).lower()
    assert not (shell.place / "effects").exists()


@pytest.mark.one_machine("it is about the file of the database")
def test_a_store_with_a_page_overwritten_says_so_or_works(shell: Shell) -> None:
    """Never a traceback, and never a silent success."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.line("sync")
    with (shell.store / "adjourn.db").open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)
    for words in (
        ("inbox",),
        ("approve", manifest["asks"][0]["id"]),
        ("show", manifest["task_id"]),
    ):
        done = shell.adjourn(*words, expect=None)
        done.must(done.code)


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "fifo"])
@pytest.mark.one_machine("a database is no directory")
def test_a_store_that_is_no_directory_is_refused(shell: Shell, kind: str) -> None:
    """Also a symbolic link: what it points to was not chosen by whoever works here."""
    (shell.place / "elsewhere").mkdir(mode=0o700)
    match kind:
        case "file":
            shell.store.write_text("precious")
        case "link":
            shell.store.symlink_to("elsewhere")
        case "dangling link":
            shell.store.symlink_to("nowhere")
        case _:
            os.mkfifo(shell.store)
    refused(shell, 5, str(shell.store))
    assert list((shell.place / "elsewhere").iterdir()) == []
    assert not (shell.place / "nowhere").exists()


def test_a_named_place_that_cannot_be_is_refused(shell: Shell) -> None:
    for place in ("/dev/null", "/proc/1/adjourn", "/no/such/place/store", "./script.sh/store", ""):
        shell.script("true")
        done = shell.adjourn("run", "--store", place, "--", "true", expect=None)
        if place:
            assert done.must(done.code).code in {1, 3, 5}, place
            assert "try: " in done.err
    assert not shell.store.exists() or place == ""


@pytest.mark.one_machine("who may use a database is for the database to say")
def test_somebody_elses_store_is_refused(shell: Shell) -> None:
    """A-R82: whoever owns the store decides in it."""
    if os.geteuid() != 0:
        missing("the right to give files away")
    shell.paused(shell.agent("approved.sh"))
    os.chown(shell.store, NOBODY, NOBODY)
    refused(shell, 5, f"uid {NOBODY}")
    os.chown(shell.store, 0, 0)
    assert len(shell.inbox()) == 1


def as_nobody(shell: Shell, *words: str, expect: int) -> Done:
    """Run adjourn as another user."""
    user = [needs("setpriv"), "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    return shell.run(
        *user, str(ADJOURN), *words, "--store", str(shell.store), expect=expect, cwd="/"
    )


@pytest.mark.one_machine(
    "who may is for the logins of a database to say: tests/shared/test_roles.py"
)
def test_another_user_can_neither_read_nor_decide(shell: Shell) -> None:
    """A-R82, A-R83: the checkpoint's id alone is worth nothing."""
    if os.geteuid() != 0:
        missing("the right to become another user")
    manifest = shell.paused(shell.agent("approved.sh"))
    for folder in (shell.place, *shell.place.parents):
        if not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o1)
    for words in (
        ("inbox",),
        ("approve", manifest["asks"][0]["id"]),
        ("resume", manifest["checkpoint_id"], "--approve-all"),
    ):
        done = as_nobody(shell, *words, expect=5)
        assert manifest["task_id"] not in done.out + done.err
    assert shell.inbox()[0]["state"] == "pending"


@pytest.mark.one_machine("a database does not lie on the disk of the workspace")
def test_a_read_only_store_is_told_and_nothing_is_lost(disk: Shell) -> None:
    manifest = disk.paused(disk.agent("approved.sh"))
    make_read_only(disk.place)
    ask = manifest["asks"][0]["id"]
    for words in (
        ("approve", ask),
        ("resume", manifest["task_id"], "--approve-all"),
        ("run", "--", "true"),
    ):
        done = disk.adjourn(*words, expect=1)
        assert "read-only" in done.err.lower()
        assert "try: " in done.err
    for look in (("inbox",), ("tasks",), ("show", manifest["task_id"])):
        done = disk.adjourn(*look, expect=None)
        assert done.must(done.code).code in {0, 1}
        assert done.code == 0 or "read-only" in done.err.lower()
    disk.run("mount", "-o", "remount,rw", str(disk.place))
    disk.line(manifest["resume_hint"])
    assert disk.lines("effects") == ["done with approved"]


@pytest.mark.one_machine("a database does not lie on the disk of the workspace")
def test_a_full_disk_is_told_and_nothing_is_lost(disk: Shell) -> None:
    """What was acknowledged before stays; what could not be written is not acknowledged."""
    manifest = disk.paused(disk.agent("approved.sh"))
    ask = manifest["asks"][0]["id"]
    filler = fill(disk.place)
    codes = set()
    for words in (
        ("run", "--", "true"),
        ("approve", ask),
        ("resume", manifest["task_id"], "--approve-all"),
    ):
        done = disk.adjourn(*words, expect=None)
        codes.add(done.must(done.code).code)
        if done.code == 1:
            assert "full" in done.err or "No space" in done.err, done.err
            assert "try: " in done.err
    assert 1 in codes
    filler.unlink()
    states = {task["task_id"]: task["state"] for task in disk.json("tasks")["tasks"]}
    assert states[manifest["task_id"]] in {"waiting", "queued", "succeeded"}
    if states[manifest["task_id"]] != "succeeded":
        disk.adjourn(
            "resume",
            manifest["task_id"],
            *(["--approve-all"] if states[manifest["task_id"]] == "waiting" else []),
        )
    assert disk.lines("effects") == ["done with approved"]


@pytest.mark.parametrize(
    ("ending", "state"), [("exit 0", "succeeded"), ("exit 90", "waiting"), ("exit 3", "failed")]
)
@pytest.mark.one_machine("a database does not lie on the disk of the workspace")
def test_a_disk_that_fills_up_while_the_command_runs_loses_no_result(
    disk: Shell, ending: str, state: str
) -> None:
    """The room for the result is taken beforehand.

    The next command finds it, and nothing is started twice.
    """
    fill_up = "dd if=/dev/zero of=filler bs=4096 2>/dev/null; dd if=/dev/zero bs=1 count=4096 2>/dev/null >> filler"
    done = disk.adjourn(
        "run",
        "--",
        "sh",
        "-c",
        f"echo start >> starts; {fill_up}; echo printed; {ending}",
        expect=None,
    )
    done.must(done.code)
    assert done.code in {0, 1, 10}
    (disk.place / "filler").unlink()
    (task,) = disk.json("tasks")["tasks"]
    assert task["state"] == state
    assert disk.lines("starts") == ["start"]


@pytest.mark.one_machine("a database does not lie in the workspace")
def test_a_store_that_vanishes_under_a_run_is_no_traceback(shell: Shell) -> None:
    done = shell.adjourn("run", "--", "sh", "-c", "rm -rf .adjourn; exit 0", expect=None)
    done.must(done.code)
    assert done.code != 0, "an exit that nobody could write down is no success"


def test_files_that_were_deleted_by_hand_cost_only_themselves(shell: Shell) -> None:
    """The store is the truth; files are copies."""
    manifest = shell.paused(shell.agent("approved.sh"))
    for name in ("runs", "session", "supervisors", "wake", ".gitignore", "write.lock"):
        shell.line(f"rm -rf {shell.store}/{name}")
    assert len(shell.inbox()) == 1
    shell.adjourn("logs", manifest["task_id"])
    shell.line(manifest["resume_hint"])
    assert shell.lines("effects") == ["done with approved"]


def test_a_program_that_somebody_is_writing_is_tried_again(shell: Shell) -> None:
    """C-R12: it provably did not start. Three tries, over at least half a minute."""
    assert sum(pause_before_try(tries) for tries in range(1, TRIES)) >= 30
    tool = shell.place / "tool"
    shutil.copy("/bin/true", tool)
    with tool.open("r+b"):
        process = shell.start("run", "--", "./tool")
        assert process.stderr
        said = process.stderr.readline().decode()
        assert "Text file busy; it is tried again in 10 s" in said
        task = shell.json("tasks")["tasks"][0]
        assert (task["state"], task["runs"]) == ("queued", 1)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert [run["state"] for run in shell.runs(task["task_id"])] == ["failed", "succeeded"]

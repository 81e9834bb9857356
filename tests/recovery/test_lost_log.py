"""The write-ahead log, its index or the database go away under a living process.

Exit 0 still means on disk.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from adjourn.core.errors import StoreProblem
from adjourn.core.states import TaskState
from adjourn.core.task import Spec, Task
from adjourn.core.trail.events import Event
from adjourn.stores.sqlite.binding import Home
from adjourn.stores.sqlite.store import SqliteStore
from tests.e2e.shell import Shell, until

pytestmark = pytest.mark.one_machine("it removes files of the store")

Loss = Callable[[Path], None]


def removed(path: Path) -> None:
    path.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def emptied_anew(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"")


def copied_over(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def truncated(path: Path) -> None:
    os.truncate(path, 0)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path: Path) -> None:
    """Put an older log into the same file, as `cp backup/adjourn.db-wal adjourn.db-wal` does."""
    with path.open("r+b") as file:
        file.seek(16)
        file.write(b"\1" * 8)  # the salts


LOSSES: list[Loss] = [removed, renamed, emptied_anew, copied_over]


def note(store: SqliteStore, name: str) -> None:
    with store.change() as tx:
        moment = 1_700_000_000_000
        spec = Spec(runner="command", argv=("true",), workspace="/")
        tx.add_task(
            Task(
                id=name,
                spec=spec,
                state=TaskState.QUEUED,
                session_id=name,
                created_at=moment,
                updated_at=moment,
                next_call=1,
            )
        )
        tx.append(Event(task_id=name, kind="task_created", by="uid:0", at=moment, facts={}))


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    opened = SqliteStore(str(tmp_path / ".adjourn"), home=Home(directory=str(tmp_path / "state")))
    note(opened, "first")
    return opened


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["adjourn.db", "adjourn.db-wal", "adjourn.db-shm"])
def test_nothing_is_acknowledged_once_a_file_of_the_store_is_another(
    store: SqliteStore, name: str, loss: Loss
) -> None:
    loss(Path(store.root) / name)
    with pytest.raises(StoreProblem, match="nothing was changed"):
        note(store, "second")


def test_nothing_is_acknowledged_once_the_log_was_emptied(store: SqliteStore) -> None:
    truncated(Path(store.root) / "adjourn.db-wal")
    with pytest.raises(StoreProblem):
        note(store, "second")


@pytest.mark.parametrize("loss", [truncated, cut_in_half, overwritten])
def test_who_only_looks_notices_that_the_log_was_changed_in_place(
    store: SqliteStore, loss: Loss
) -> None:
    store.require_in_place()
    loss(Path(store.root) / "adjourn.db-wal")
    with pytest.raises(StoreProblem, match="-wal was removed or replaced"):
        store.require_in_place()


def test_a_log_that_begins_again_between_two_looks_is_not_taken_for_lost(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks beside a writer reads the index and the log at two moments."""
    writer = SqliteStore(store.root, home=Home(directory=str(Path(store.root).parent / "state")))
    really_read, writes = os.pread, 0

    def read_slowly(fd: int, size: int, offset: int, /) -> bytes:
        nonlocal writes
        content = really_read(fd, size, offset)
        if (
            size == 100 and offset == 0 and fd == store._files._index and writes < 2
        ):  # the index was read, and once more
            writes += 1
            with monkeypatch.context() as patch:
                patch.setattr(os, "pread", really_read)
                for letter in b"ab":
                    with writer.change() as tx:  # larger than a log: the next one begins it again
                        tx.keep_shared_document("x", bytes([letter]) * 700_000)
        return content

    monkeypatch.setattr(os, "pread", read_slowly)
    store.require_in_place()
    assert writes == 2
    writer.close()


@pytest.mark.parametrize("loss", [*LOSSES, truncated])
@pytest.mark.parametrize("name", ["adjourn.db-wal", "adjourn.db-shm"])
def test_nothing_is_acknowledged_that_was_committed_into_a_lost_file(
    store: SqliteStore, name: str, loss: Loss
) -> None:
    """The file goes away in the middle of the transaction.

    The commit goes well, and is worth nothing.
    """
    if (name, loss) == ("adjourn.db-shm", truncated):
        pytest.skip(
            "a mapped file that is cut off ends every process that looks at it, whatever it is"
        )

    def change() -> None:
        with store.change() as tx:
            tx.keep_shared_document("x", b"x")
            loss(Path(store.root) / name)

    with pytest.raises(StoreProblem):
        change()


@pytest.mark.parametrize("name", ["adjourn.db-wal", "adjourn.db-shm"])
def test_a_decision_beside_a_worker_that_lost_its_log_is_refused_or_kept(
    shell: Shell, name: str
) -> None:
    """Whoever comes next shares the index with the worker, and would write behind the end of an empty log."""
    manifest = shell.paused(shell.agent("approved.sh"))
    worker = shell.start("worker", "--pool", "another", stdout=subprocess.DEVNULL)
    until(lambda: "another" in shell.adjourn("worker", "--status").out, what="the worker is there")
    (shell.store / name).unlink()
    ask = manifest["asks"][0]["id"]
    decided = shell.adjourn("approve", ask, expect=None)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    if decided.code == 0:
        assert shell.state(manifest["task_id"]) == "queued"
    else:
        assert "removed or replaced" in decided.err
    again = shell.adjourn("approve", ask, expect=None)
    assert again.code in {0, 4, 5}, again.err
    if again.code == 5:
        assert "adjourn store accept" in again.err


@pytest.mark.parametrize("loss", [removed, copied_over, truncated, cut_in_half, overwritten])
def test_a_worker_leaves_when_its_log_is_gone(shell: Shell, loss: Loss) -> None:
    """Also one that writes nothing: it would take up what is decided from a store that lost its past."""
    shell.adjourn("run", "--", "true")
    (shell.store / "supervision.yaml").write_text("poll_interval: 0.2\n")
    worker = shell.start("worker", stdout=subprocess.DEVNULL)
    until(lambda: "default" in shell.adjourn("worker", "--status").out, what="the worker is there")
    loss(shell.store / "adjourn.db-wal")
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == 1, err
    assert b"removed or replaced" in err


def test_an_emptied_log_beside_a_worker_is_named(shell: Shell) -> None:
    """Whoever comes next shares the index with the worker, and finds less than it says."""
    shell.adjourn("run", "--", "true")
    worker = shell.start("worker", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: "default" in shell.adjourn("worker", "--status").out, what="the worker is there")
    shell.adjourn("run", "--pool", "another", "--", "true")
    os.truncate(shell.store / "adjourn.db-wal", 0)
    refused = shell.adjourn("run", "--", "true", expect=None)
    worker.terminate()
    worker.wait(timeout=60)
    assert refused.code in {1, 5}, refused
    assert "rollback" not in refused.err
    assert (
        "adjourn.db-wal was removed or replaced" in refused.err
        or "adjourn store accept" in refused.err
    )

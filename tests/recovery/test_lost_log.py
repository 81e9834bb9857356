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


def test_a_worker_leaves_when_its_log_is_gone(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    worker = shell.start("worker", stdout=subprocess.DEVNULL)
    until(lambda: "default" in shell.adjourn("worker", "--status").out, what="the worker is there")
    (shell.store / "adjourn.db-wal").unlink()
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

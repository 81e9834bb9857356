"""What a worker does while nothing happens: one short look, at a file and nothing else."""

from pathlib import Path

from adjourn.stores.sqlite.database import SQL, SqliteConnection
from adjourn.stores.sqlite.store import SqliteStore


def test_the_look_for_ready_tasks_reads_an_index_of_them_alone(tmp_path: Path) -> None:
    """C-R7, C-R19, C-R22: a short query on the store's own file.

    No server and no message queue is asked.
    """
    SqliteStore(str(tmp_path / ".adjourn")).close()
    database = SqliteConnection(str(tmp_path / ".adjourn" / "adjourn.db"))
    plan = " ".join(
        str(row) for row in database.all(f"EXPLAIN QUERY PLAN {SQL['queued']}", "default", 4)
    )
    database.close()
    assert "task_queued" in plan
    assert "SCAN" not in plan

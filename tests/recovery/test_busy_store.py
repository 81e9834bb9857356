"""A store that others write to at the same moment is not mistaken for one that lost its past."""

import threading
import time
from pathlib import Path

from adjourn.stores.sqlite.binding import Home
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.testing.values import a_task, an_event


def test_a_commit_of_another_is_not_taken_for_a_lost_past(tmp_path: Path) -> None:
    """Somebody commits between the moment that a view shows and the moment in which the mark outside is read."""
    root, home = str(tmp_path / ".adjourn"), Home(directory=str(tmp_path / "state"))
    task = a_task()
    writer = SqliteStore(root, home=home)
    with writer.change() as tx:
        tx.add_task(task)
    has_ended = threading.Event()

    def write() -> None:
        store = SqliteStore(root, home=home)
        while not has_ended.is_set():
            with store.change() as tx:
                tx.append(an_event(task.id))
        store.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            store = SqliteStore(root, home=home)
            store.require_ours()
            assert store.missing() is None
            store.close()
    finally:
        has_ended.set()
        thread.join()
        writer.close()

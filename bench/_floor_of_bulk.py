"""The floor of many decisions.

A bare Python script on SQLite that reads ids and records each, all in one transaction.
"""

import sqlite3
import sys

_TABLES = """
CREATE TABLE task (id TEXT PRIMARY KEY, state TEXT, version INTEGER, next_call INTEGER);
CREATE INDEX task_state ON task (state);
CREATE TABLE call (no INTEGER PRIMARY KEY, state TEXT, approved_by TEXT);
CREATE TABLE ask (id TEXT PRIMARY KEY, task TEXT, call INTEGER, state TEXT, settled_by TEXT);
CREATE INDEX ask_pending ON ask (id) WHERE state = 'pending';
CREATE TABLE event (no INTEGER PRIMARY KEY, task TEXT, body TEXT);
"""


def prepare(path: str, ids: list[str]) -> None:
    """Make a database in which each id waits."""
    db = sqlite3.connect(path)
    db.executescript(f"PRAGMA journal_mode = WAL; {_TABLES}")
    db.executemany("INSERT INTO task VALUES (?, 'waiting', 1, NULL)", [(name,) for name in ids])
    db.executemany(
        "INSERT INTO call VALUES (?, 'pending', NULL)", [(number,) for number in range(len(ids))]
    )
    db.executemany(
        "INSERT INTO ask VALUES (?, ?, ?, 'pending', NULL)",
        [(name, name, number) for number, name in enumerate(ids)],
    )
    db.commit()
    db.close()


def main(path: str) -> None:
    """Record each id of stdin: read the ask and its task, write ask, call, task and two events."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("BEGIN IMMEDIATE")
    for name in sys.stdin.read().split():
        ((task, call),) = db.execute(
            "SELECT task, call FROM ask WHERE id = ? AND state = 'pending'", (name,)
        ).fetchall()
        ((version,),) = db.execute("SELECT version FROM task WHERE id = ?", (task,)).fetchall()
        db.execute("UPDATE ask SET state = 'approved', settled_by = 'uid' WHERE id = ?", (name,))
        db.execute("UPDATE call SET state = 'approved', approved_by = 'uid' WHERE no = ?", (call,))
        db.execute(
            "UPDATE task SET state = 'queued', version = ?, next_call = 2 WHERE id = ?",
            (version + 1, task),
        )
        db.executemany(
            "INSERT INTO event (task, body) VALUES (?, ?)",
            [(task, "ask_approved"), (task, "task_queued")],
        )
        print("approved", name)
    db.execute("COMMIT")


if __name__ == "__main__":
    main(sys.argv[1])

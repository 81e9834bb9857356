"""The least that a resume can be: load a task, approve it, run its command, finish it; a bare Python script on SQLite.

usage: python _floor_of_resume.py DATABASE TASK
"""

import json
import os
import sqlite3
import sys


def main(path: str, task: str) -> int:
    """Every step is on disk before the next one, as it must be for a decision and for the start of a command."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    argv, state = db.execute("SELECT argv, state FROM task WHERE id = ?", (task,)).fetchone()
    assert state == "waiting"
    db.execute(
        "UPDATE task SET state = 'approved', reply = 'approved' WHERE id = ? AND state = 'waiting'",
        (task,),
    )
    db.execute("UPDATE task SET state = 'running' WHERE id = ? AND state = 'approved'", (task,))
    words = json.loads(argv)
    pid = os.posix_spawnp(words[0], words, os.environ | {"AUTO_APPROVAL": "approved"})
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    db.execute(
        "UPDATE task SET state = 'done', code = ? WHERE id = ? AND state = 'running'", (code, task)
    )
    return code


def prepare(path: str, tasks: list[str], argv: list[str]) -> sqlite3.Connection:
    """Make a database of waiting tasks.

    While the connection lives, nobody's close pays for a checkpoint.
    """
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(
        "CREATE TABLE task (id TEXT PRIMARY KEY, argv TEXT, state TEXT, reply TEXT, code INTEGER)"
    )
    db.execute("BEGIN")
    db.executemany(
        "INSERT INTO task VALUES (?, ?, 'waiting', NULL, NULL)",
        [(task, json.dumps(argv)) for task in tasks],
    )
    db.execute("COMMIT")
    return db


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

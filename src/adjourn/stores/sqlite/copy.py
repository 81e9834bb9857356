"""Copies all rows of a SQLite store out, and all rows of another store in."""

from adjourn.stores.copy import Everything, KeptEvent, KeptTask, KeptTurn, add_values
from adjourn.stores.sqlite.binding import IDENTITY
from adjourn.stores.sqlite.database import SqliteConnection, SqliteRows

# Who a store is stays with it
_SHARED = "SELECT name, body FROM shared_document WHERE name != ? ORDER BY name"
_DOCUMENTS = "SELECT task, name, body FROM document ORDER BY task, name"


def everything_in(db: SqliteConnection, rows: SqliteRows) -> Everything:
    """Return all rows, as of the transaction that is open."""
    tasks = [
        KeptTask(no, rows.task(name), head)
        for no, name, head in db.all("SELECT no, id, head FROM task ORDER BY no")
    ]
    names = [kept.task.id for kept in tasks]
    turns = db.all("SELECT run, key, kind, thing, left_open FROM turn ORDER BY no")
    return Everything(
        tasks=tasks,
        runs=[run for name in names for run in rows.runs(name)],
        calls=[call for name in names for call in rows.calls(name)],
        asks=[ask for name in names for ask in rows.asks(name)],
        turns=[
            KeptTurn(run, key, kind, thing, bool(left_open))
            for run, key, kind, thing, left_open in turns
        ],
        documents=[(task, name, body) for task, name, body in db.all(_DOCUMENTS)],
        messages=[(no, body) for no, body in db.all("SELECT no, body FROM message ORDER BY no")],
        shared_documents=[(name, body) for name, body in db.all(_SHARED, IDENTITY)],
        events=[
            KeptEvent(*row)
            for row in db.all("SELECT no, task, body, link, seal FROM event ORDER BY no")
        ],
        outboxes=[
            (name, body)
            for name, body in db.all("SELECT notifier, body FROM outbox ORDER BY notifier")
        ],
    )


def take_in(db: SqliteConnection, rows: SqliteRows, content: Everything) -> None:
    """Put all rows of another store into this empty one, inside the transaction that is open."""
    for kept in content.tasks:
        db.all("DELETE FROM sqlite_sequence WHERE name = 'task'")
        db.all("INSERT INTO sqlite_sequence (name, seq) VALUES ('task', ?)", kept.no - 1)
        rows.add_task(kept.task)
        db.all("UPDATE task SET head = ? WHERE no = ?", kept.head, kept.no)
    add_values(rows, content)
    _take_in_rows(db, content)


def _take_in_rows(db: SqliteConnection, content: Everything) -> None:
    for turn in content.turns:
        db.all(
            "INSERT INTO turn (run, key, kind, thing, left_open) VALUES (?, ?, ?, ?, ?)",
            *turn[:4],
            int(turn.left_open),
        )
    for document in content.documents:
        db.all("INSERT INTO document (task, name, body) VALUES (?, ?, ?)", *document)
    for message in content.messages:
        db.all("INSERT INTO message (no, body) VALUES (?, ?)", *message)
    for shared in content.shared_documents:
        db.all("INSERT INTO shared_document (name, body) VALUES (?, ?)", *shared)
    for event in content.events:
        db.all("INSERT INTO event (no, task, body, link, seal) VALUES (?, ?, ?, ?, ?)", *event)
    for outbox in content.outboxes:
        db.all("INSERT INTO outbox (notifier, body) VALUES (?, ?)", *outbox)

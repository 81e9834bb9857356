"""Copies all rows of the database out, and all rows of another store in."""

from adjourn.stores.copy import Everything, KeptEvent, KeptTask, KeptTurn, add_values
from adjourn.stores.postgres.ask_rows import PostgresRows
from adjourn.stores.postgres.connection import PostgresConnection

_TASKS = b"SELECT no, id, head FROM adjourn.task ORDER BY no"
_TURNS = b"SELECT run, key, kind, thing, left_open FROM adjourn.turn ORDER BY no"
_ADD_TURN = (
    b"INSERT INTO adjourn.turn (run, key, kind, thing, left_open) VALUES ($1, $2, $3, $4, $5)"
)
_DOCUMENTS = b'SELECT task, name, body FROM adjourn.document ORDER BY task, name COLLATE "C"'
_SHARED = b'SELECT name, body FROM adjourn.shared_document ORDER BY name COLLATE "C"'
_EVENTS = b"SELECT no, task, body, link, seal FROM adjourn.event ORDER BY no"
_OUTBOXES = b'SELECT notifier, body FROM adjourn.outbox ORDER BY notifier COLLATE "C"'


def everything_in(db: PostgresConnection, rows: PostgresRows) -> Everything:
    """Return all rows, as of the transaction that is open."""
    tasks = [KeptTask(no, rows.task(name), head) for no, name, head in db.all(_TASKS)]
    names = [kept.task.id for kept in tasks]
    return Everything(
        tasks=tasks,
        runs=[run for name in names for run in rows.runs(name)],
        calls=[call for name in names for call in rows.calls(name)],
        asks=[ask for name in names for ask in rows.asks(name)],
        turns=[
            KeptTurn(run, key, kind.decode("utf-8", "surrogatepass"), *rest)
            for run, key, kind, *rest in db.all(_TURNS)
        ],
        documents=[(task, name, body) for task, name, body in db.all(_DOCUMENTS)],
        messages=[
            (no, body) for no, body in db.all(b"SELECT no, body FROM adjourn.message ORDER BY no")
        ],
        shared_documents=[(name, body) for name, body in db.all(_SHARED)],
        events=[KeptEvent(*row) for row in db.all(_EVENTS)],
        outboxes=[(name, body) for name, body in db.all(_OUTBOXES)],
    )


def take_in(db: PostgresConnection, rows: PostgresRows, content: Everything) -> None:
    """Put all rows of another store into this empty one, inside the transaction that is open."""
    for kept in content.tasks:
        db.all(b"SELECT setval('adjourn.task_no_seq', $1, false)", kept.no)
        rows.add_task(kept.task)
        db.all(b"UPDATE adjourn.task SET head = $2 WHERE no = $1", kept.no, kept.head)
    add_values(rows, content)
    _take_in_rows(db, content)


def _take_in_rows(db: PostgresConnection, content: Everything) -> None:
    for run, key, kind, thing, left_open in content.turns:
        db.all(_ADD_TURN, run, key, kind.encode("utf-8", "surrogatepass"), thing, left_open)
    for document in content.documents:
        db.all(b"INSERT INTO adjourn.document (task, name, body) VALUES ($1, $2, $3)", *document)
    for message in content.messages:
        db.all(b"INSERT INTO adjourn.message (no, body) VALUES ($1, $2)", *message)
    for shared in content.shared_documents:
        db.all(b"INSERT INTO adjourn.shared_document (name, body) VALUES ($1, $2)", *shared)
    for event in content.events:
        db.all(
            b"INSERT INTO adjourn.event (no, task, body, link, seal) VALUES ($1, $2, $3, $4, $5)",
            *event,
        )
    for outbox in content.outboxes:
        db.all(b"INSERT INTO adjourn.outbox (notifier, body) VALUES ($1, $2)", *outbox)

"""All that a store keeps, as one value.

What is copied from one store into another, number by number.
"""

from typing import NamedTuple

from adjourn.core.ask import Ask
from adjourn.core.call import Call
from adjourn.core.task import Run, Task
from adjourn.ports.store import Change


class KeptTask(NamedTuple):
    """A task, its number, and the head of its chain."""

    no: int
    task: Task
    head: bytes | None


class KeptEvent(NamedTuple):
    """An event as it lies in its row."""

    no: int
    task: int
    body: bytes | None
    link: bytes | None
    seal: bytes


class KeptTurn(NamedTuple):
    """One time that a run asked for something, as it lies in its row."""

    run: int
    key: bytes
    kind: str
    thing: str
    left_open: bool


class Everything(NamedTuple):
    """All rows of one moment, oldest first."""

    tasks: list[KeptTask]
    runs: list[Run]
    calls: list[Call]
    asks: list[Ask]
    turns: list[KeptTurn]
    documents: list[tuple[int, str, bytes]]
    messages: list[tuple[int, bytes]]
    shared_documents: list[tuple[str, bytes]]
    events: list[KeptEvent]
    outboxes: list[tuple[str, bytes]]


def add_values(rows: Change, content: Everything) -> None:
    """Keep what belongs to tasks that are there already.

    What each of them did, wanted to do, and asked.
    """
    for run in content.runs:
        rows.add_run(run)
    for call in content.calls:
        rows.add_call(call)
    for ask in content.asks:
        rows.add_ask(ask)

"""What the lists of a TUI show: the rows of the inbox, of tasks, of rules and of the trail."""

from collections.abc import Sequence

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask
from adjourn.core.errors import UnreadableRow
from adjourn.core.states import TaskState
from adjourn.core.task import Milliseconds, Task
from adjourn.core.text.render import clipped, fit, prose, title
from adjourn.core.text.when import ago
from adjourn.ports.store import View
from adjourn.views.allowance import what_it_matches
from adjourn.views.ask_row import ask_gist
from adjourn.views.block import Line, Span, line, state_role
from adjourn.views.call import GIST, short
from adjourn.views.overview import in_order
from adjourn.wiring import find_unattended
from adjourn.wiring.live_tasks import LiveTasks
from adjourn.wiring.policies import allowances

PAGE = 200  # asks that are read at a time
_LATER = 60_000  # milliseconds: what was just decided is listed, too
_MOST_TASKS = 200  # paused or left queued, below the asks
_MOST_EVENTS = 1_000
_WORD, _WHEN, _STORE = 9, 5, 14  # columns


class RowKey(msgspec.Struct, frozen=True):
    """What a row is about: in which of the stores, of which kind, and its id."""

    store: int
    kind: str  # ask, task, rule or event
    id: str

    def __str__(self) -> str:
        return f"{self.store}:{self.kind}:{self.id}"


def parsed_key(text: str) -> RowKey:
    """Return what a row's text key says."""
    store, kind, name = text.split(":", 2)
    return RowKey(int(store), kind, name)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a list. Its text is rendered."""

    word: str  # its state or kind
    at: Milliseconds
    what: str
    task_id: str = ""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All keys of a list, as kinds and ids, and the rows that were read with them."""

    keys: tuple[tuple[str, str], ...]
    rows: dict[str, Row]
    asks: int = 0
    snoozed: int = 0


def read_inbox(
    controller: Controller, root: str, *, known: frozenset[str] = frozenset()
) -> Listing:
    """Read the ids of all open asks, the first rows, then the tasks that nobody goes on with.

    Rows that are known already are not read again.
    """
    now = controller.now()
    with controller.store.read() as view:
        ids = [name for name, _ in view.open_ask_ids(awake_at=now)]
        rows: dict[str, Row] = {}
        if any(name not in known for name in ids[:PAGE]):
            for ask in view.open_asks(limit=PAGE, awake_at=now):
                rows[ask.id] = _ask_row(view, ask)
        snoozed = view.count_snoozed_asks(now=now)
        paused = view.tasks(states=(TaskState.PAUSED,), limit=_MOST_TASKS)
        queued = view.tasks(states=(TaskState.QUEUED,), limit=_MOST_TASKS)
    left = [*paused, *find_unattended(root, queued, now=now + _LATER)] if queued else paused
    rows |= {task.id: task_row(task) for task in left}
    keys = [("ask", name) for name in ids] + [("task", task.id) for task in left]
    return Listing(keys=tuple(keys), rows=rows, asks=len(ids), snoozed=snoozed)


def read_ask_rows(controller: Controller, *, after: str | None) -> dict[str, Row]:
    """Read a page of asks, from the one after the given one."""
    with controller.store.read() as view:
        found = view.open_asks(limit=PAGE, after=after, awake_at=controller.now())
        return {ask.id: _ask_row(view, ask) for ask in found}


def matching_asks(controller: Controller, words: Sequence[str]) -> dict[str, Row]:
    """Read all asks, and return those whose row has all of these words."""
    found: dict[str, Row] = {}
    after: str | None = None
    while page := read_ask_rows(controller, after=after):
        found |= {name: row for name, row in page.items() if is_match(name, row, words)}
        after = list(page)[-1]
        if len(page) < PAGE:
            break
    return found


def is_match(name: str, row: Row, words: Sequence[str]) -> bool:
    """Return whether a row has all of these words, in whatever case."""
    text = f"{name} {row.task_id} {row.word} {row.what}".casefold()
    return all(word.casefold() in text for word in words)


def _ask_row(view: View, ask: Ask) -> Row:
    try:
        what = ask_gist(view, ask, view.task(ask.task_id), None)
    except UnreadableRow as error:
        error.note_in(view.unreadable)
        what = f"({error.kind} cannot be read)"
    return Row(word=ask.kind, at=ask.created_at, what=what, task_id=ask.task_id)


def task_row(task: Task) -> Row:
    """Return the row of a task that nobody asks anything about."""
    what = title(task.spec, columns=GIST)
    if task.state in {TaskState.FAILED, TaskState.PAUSED} and task.message:
        what = clipped(f"{what}: {prose(task.message)}", columns=GIST)
    return Row(word=task.state, at=task.updated_at, what=what, task_id=task.id)


def read_tasks(controller: Controller) -> Listing:
    """Read the tasks that need a person, run or wait, and the newest of those that ended."""
    live = LiveTasks(controller.store)
    live.read_all()
    found = in_order(live.tasks)
    rows = {
        each.task.id: Row(
            word=each.task.state, at=each.task.updated_at, what=each.what, task_id=each.task.id
        )
        for each in found
    }
    return Listing(keys=tuple(("task", name) for name in rows), rows=rows)


def read_rules(controller: Controller) -> Listing:
    """Read the always-allow rules of the user."""
    del controller  # they hold for all stores
    rows = {
        rule.id: Row(word="rule", at=rule.at, what=next(what_it_matches(rule)))
        for rule in allowances()
    }
    return Listing(keys=tuple(("rule", name) for name in rows), rows=rows)


def read_events(controller: Controller) -> Listing:
    """Read what happened last, newest first."""
    rows: dict[str, Row] = {}
    with controller.store.read() as view:
        head, _ = view.trail_head()
        found = view.happened(after=max(0, head - _MOST_EVENTS), limit=_MOST_EVENTS)
    for happened in reversed(found):
        event = happened.event
        what = f"{short(event.task_id)}  {event.kind.replace('_', ' ')}  {prose(event.by)}"
        rows[str(happened.place)] = Row(
            word=str(happened.place), at=event.at, what=what, task_id=event.task_id
        )
    return Listing(keys=tuple(("event", place) for place in rows), rows=rows)


def drawn_row(row: Row, *, columns: int, now: Milliseconds, store: str, is_marked: bool) -> Line:
    """Lay a row out for so many columns: a mark, the state, the age, the store, and what it is."""
    head = (
        Span("* " if is_marked else "  ", "strong"),
        Span(fit(row.word, columns=_WORD), state_role(row.word)),
        Span(" "),
        Span(fit(ago(row.at, now=now).split(" ")[0], columns=_WHEN), "muted"),
        Span(" "),
        *((Span(fit(store, columns=_STORE)), Span(" ")) if store else ()),
    )
    used = 2 + _WORD + 1 + _WHEN + 1 + (_STORE + 1 if store else 0)
    return line(*head, Span(clipped(row.what, columns=max(columns - used, 4))))

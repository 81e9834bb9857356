"""The one layout of what runs, waits and has ended, in one store or in several."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Milliseconds, Task
from adjourn.core.text.when import ago
from adjourn.core.trail.durations import TimeSpent, time_words
from adjourn.views.block import BLANK, Block, Table, line
from adjourn.views.call import short

# What needs a person comes first, what is over last
_ORDER = {
    TaskState.WAITING: 0,
    TaskState.PAUSED: 1,
    TaskState.RUNNING: 2,
    TaskState.QUEUED: 3,
    TaskState.FAILED: 4,
    TaskState.SUCCEEDED: 4,
    TaskState.CANCELED: 4,
}
_COUNTED = ("waiting", "paused", "running", "queued")
_LEAST_ROWS = 3


class OverviewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as a row of the overview."""

    task: Task
    what: str  # rendered: what it asks, or what it is
    spent: TimeSpent
    store: str = ""  # the name of its store, where there are several


def in_order(tasks: Sequence[OverviewTask]) -> list[OverviewTask]:
    """Return tasks with those first that need a person, and in each state the newest first."""
    return sorted(tasks, key=lambda each: (_ORDER[each.task.state], -each.task.updated_at))


def overview_blocks(
    tasks: Sequence[OverviewTask],
    *,
    now: Milliseconds,
    rows: int | None = None,
    troubles: Sequence[str] = (),
) -> list[Block]:
    """Lay out how many tasks are in which state, then a row for each, and what is left out.

    `rows` is the height that the table may take.
    """
    counts = Counter(str(each.task.state) for each in tasks)
    told = [f"{counts[state]} {state}" for state in _COUNTED if counts[state]]
    blocks: list[Block] = [line(", ".join(told) or "Nothing runs and nothing waits.")]
    blocks += [line(trouble) for trouble in troubles]
    if not tasks:
        return blocks
    ordered = in_order(tasks)
    room = len(ordered) if rows is None else max(rows, _LEAST_ROWS)
    shown = ordered if len(ordered) <= room else ordered[: room - 1]
    has_stores = any(each.store for each in ordered)
    head = ("STATE", "TASK", "TIME", *(("STORE",) if has_stores else ()), "WHAT")
    table = Table(
        head=head,
        rows=[_row(each, has_stores=has_stores, now=now) for each in shown],
        state_column=0,
    )
    blocks += [BLANK, table]
    if left_out := len(ordered) - len(shown):
        blocks.append(line(f"… and {left_out} more"))
    return blocks


def _row(each: OverviewTask, *, has_stores: bool, now: Milliseconds) -> tuple[str, ...]:
    task = each.task
    when = time_words(each.spent, now=now)
    if task.state in ENDED:
        when = f"{when}; {ago(task.updated_at, now=now)}"
    store = (each.store,) if has_stores else ()
    return (task.state, short(task.id), when, *store, each.what)

"""The one layout of a plan: its graph, how each task stands, and what to do next."""

from collections.abc import Iterator

import msgspec

from adjourn.core.plan.plan import ItemState, Progress, Stand, in_order
from adjourn.core.states import ENDED, TaskState
from adjourn.core.text.render import prose
from adjourn.views.block import Block, CommandWriter, Span, Table, line
from adjourn.views.call import short, unmade_blocks, unmade_words

_UNICODE = ("├─ ", "└─ ", "│  ", "   ", "… ")
_ASCII = ("|- ", "`- ", "|  ", "   ", "... ")
_MESSAGE = 200
_DEEPEST = 20  # steps to the right; a task further down has the number of its depth instead
_FEWEST = 2  # of them, however few columns there are
_NOTE = 12  # columns that a note gets at least
_OTHER_COLUMNS = 23 + _NOTE  # for state, task and note
_ENDED_BADLY = frozenset({ItemState.FAILED, ItemState.CANCELED})


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One task in the drawing."""

    stem: str
    stand: Stand
    below: str | None


def graph_block(progress: Progress, *, columns: int | None, has_unicode: bool = True) -> Table:
    """Draw the graph of a plan, as deep as so many columns allow."""
    deepest = _DEEPEST
    if columns is not None:
        longest = max((len(stand.item.id) for stand in progress.stands), default=0)
        deepest = min(_DEEPEST, max(_FEWEST, (columns - longest - _OTHER_COLUMNS) // 3))
    drawing = _tree(progress, deepest=deepest, joints=_UNICODE if has_unicode else _ASCII)
    rows = [
        (
            f"{row.stem}{row.stand.item.id}",
            row.stand.state,
            short(row.stand.task.id) if row.stand.task else "",
            _note(row),
        )
        for row in drawing
    ]
    head = ("ID", "STATE", "TASK", "NOTE")
    return Table(head=head, rows=rows, state_column=1, least=_NOTE)


def plan_blocks(progress: Progress, commands: CommandWriter, *, named: str) -> list[Block]:
    """Lay out what to do next with a plan that was named so."""
    then = line("Then: ", Span(commands("execute", named), "code"))
    match progress.outcome:
        case "completed":
            again = Span(commands("execute", named, "--start-over"), "code")
            return [
                *standing_blocks(progress, commands, named=named),
                line("Start over with: ", again),
            ]
        case "paused":
            return [then]
        case "failed":
            failed = [each for each in progress.stands if each.task and each.state in _ENDED_BADLY]
            restarts = [
                line("Restart with: ", Span(commands("restart", each.task.id), "code"))
                for each in failed
                if each.task
            ]
            names = ", ".join(stand.item.id for stand in failed)
            return [line(f"Failed: {names}"), *restarts, then]


def standing_blocks(progress: Progress, commands: CommandWriter, *, named: str) -> list[Block]:
    """Lay out what the graph of a plan does not tell: how it ended, or what it waits for."""
    if progress.is_held:
        held = Span(commands("execute", named), "code")
        return [line("Paused: none of its tasks starts until you go on. Go on with: ", held)]
    if progress.outcome != "completed":
        return []
    unmade = [call for stand in progress.stands for call in stand.unmade]
    if not unmade:
        return [line("Completed: every task of the plan has succeeded.")]
    return [line(f"Completed; {unmade_words(len(unmade))}:"), *unmade_blocks(unmade)]


def changes_since_start(progress: Progress, commands: CommandWriter) -> Iterator[str]:
    """Say which tasks changed in the plan after they had started."""
    for stand in progress.stands:
        if not stand.is_changed or stand.task is None:
            continue
        name, task = stand.item.id, stand.task.id
        if stand.can_start:
            end = "failed" if stand.task.state is TaskState.FAILED else "was canceled"
            yield f"{name}: restarting, because its definition changed after task {task} {end}"
        elif stand.task.state in ENDED:
            yield (
                f"{name} is done, and its definition has changed since: give it another id to run"
                " it again"
            )
        else:
            yield (
                f"{name} goes on as it started; its definition has changed since. To start it over:"
                f" {commands('cancel', task)}"
            )


def _tree(
    progress: Progress, *, deepest: int, joints: tuple[str, str, str, str, str]
) -> Iterator[_Row]:
    """Put every task below the one of its needs that comes last, which makes a tree of the graph.

    The others are noted. It walks without recursion, for a plan may be a thousand tasks deep.
    """
    middle, last, goes_on, is_over, elided = joints
    place = {item.id: number for number, item in enumerate(in_order(progress.plan))}
    above = {
        item.id: max(item.needs, key=place.__getitem__, default=None)
        for item in progress.plan.items
    }
    children: dict[str | None, list[Stand]] = {}
    for stand in progress.stands:
        children.setdefault(above[stand.item.id], []).append(stand)

    waiting = [("", stand, 0) for stand in reversed(children.get(None, []))]
    while waiting:
        stem, stand, depth = waiting.pop()
        parent = above[stand.item.id]
        is_last = stand is children[parent][-1]
        joint = (last if is_last else middle) if parent else ""
        is_drawn = depth <= deepest
        yield _Row(
            stem=stem + joint if is_drawn else f"{elided}{depth} deep: ",
            stand=stand,
            below=parent,
        )
        deeper = stem + ((is_over if is_last else goes_on) if parent and is_drawn else "")
        waiting += [
            (deeper, child, depth + 1) for child in reversed(children.get(stand.item.id, []))
        ]


def _note(row: _Row) -> str:
    stand = row.stand
    others = [need for need in stand.item.needs if need != row.below]
    notes = [f"also needs {', '.join(others)}"] if others else []
    if stand.in_review:
        notes.append("waits for a review")
    if stand.is_changed:
        notes.append("its definition has changed since it started")
    if stand.unmade:
        notes.append(unmade_words(len(stand.unmade)))
    if stand.state is ItemState.FAILED and stand.task and stand.task.message:
        notes.append(prose(stand.task.message)[:_MESSAGE])
    return "; ".join(notes)

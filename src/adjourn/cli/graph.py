"""Draws a plan: each task below the last one that it needs, with how it stands."""

import sys
from collections.abc import Iterator

import msgspec

from adjourn.cli.present import short, table
from adjourn.cli.session import Session
from adjourn.core.plan import ItemState, Progress, Stand, in_order
from adjourn.core.render import prose

_LINES = {True: ("├─ ", "└─ ", "│  ", "   "), False: ("|- ", "`- ", "|  ", "   ")}  # by whether the terminal has them
_MESSAGE = 200
_DEEPEST = 20  # steps to the right; whoever is further down is told by number
_FEWEST = 2  # of them, however narrow the terminal is
_NOTE = 12  # columns that a note gets at least
_BESIDE = 23 + _NOTE  # columns for state, task and note


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One task in the drawing."""

    stem: str
    stand: Stand
    below: str | None


def drawn(session: Session, progress: Progress) -> str:
    """Return the graph of a plan, aligned, in characters that the terminal has."""
    drawing = _rows(progress, deepest=_deepest(session, progress))
    rows = [(f"{row.stem}{row.stand.item.id}", row.stand.state, _task(row.stand), _note(session, row)) for row in drawing]
    return table(session, ("ID", "STATE", "TASK", "NOTE"), rows, colour_by=1, least=_NOTE)


def _deepest(session: Session, progress: Progress) -> int:
    """Return how many steps to the right leave room for the names and for what stands beside them."""
    longest = max((len(stand.item.id) for stand in progress.stands), default=0)
    return min(_DEEPEST, max(_FEWEST, (session.columns - longest - _BESIDE) // 3))


def _rows(progress: Progress, *, deepest: int) -> list[Row]:
    """Put every task below the one of its needs that comes last, which makes a tree of the graph; the others are noted."""
    place = {item.id: number for number, item in enumerate(in_order(progress.plan))}
    above = {item.id: max(item.needs, key=place.__getitem__, default=None) for item in progress.plan.items}
    children: dict[str | None, list[Stand]] = {}
    for stand in progress.stands:
        children.setdefault(above[stand.item.id], []).append(stand)
    return list(_walked(children, above, deepest=deepest))


def _walked(children: dict[str | None, list[Stand]], above: dict[str, str | None], *, deepest: int) -> Iterator[Row]:
    """Walk the tree from top to bottom; without recursion, for a plan may be a thousand tasks deep."""
    middle, last, goes_on, is_over = _LINES[_has_lines()]
    waiting = [("", stand, 0) for stand in reversed(children.get(None, []))]
    while waiting:
        stem, stand, depth = waiting.pop()
        parent = above[stand.item.id]
        is_last = stand is children[parent][-1]
        joint = (last if is_last else middle) if parent else ""
        yield Row(stem=stem + joint if depth <= deepest else f"{_elided()}{depth} deep: ", stand=stand, below=parent)
        deeper = stem + ((is_over if is_last else goes_on) if parent and depth <= deepest else "")
        waiting += [(deeper, child, depth + 1) for child in reversed(children.get(stand.item.id, []))]


def _has_lines() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


def _elided() -> str:
    return "… " if _has_lines() else "... "


def _task(stand: Stand) -> str:
    return short(stand.task.id) if stand.task else ""


def _note(session: Session, row: Row) -> str:
    stand = row.stand
    others = [need for need in stand.item.needs if need != row.below]
    notes = [f"also needs {', '.join(others)}"] if others else []
    if stand.in_review:
        notes.append("waits for a review")
    if stand.is_changed:
        notes.append("its words have changed since it began")
    if stand.state is ItemState.FAILED and stand.task and stand.task.message:
        notes.append(prose(_copied(session, stand.task.message))[:_MESSAGE])
    return "; ".join(notes)


def _copied(session: Session, text: str) -> str:
    """Keep secrets out of what nobody looks at, and others keep: the log of a CI job, say."""
    if sys.stdout.isatty():
        return text
    clean: str = session.redactor.text(text)
    return clean

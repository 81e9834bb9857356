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


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One task in the drawing."""

    stem: str
    stand: Stand
    below: str | None


def drawn(session: Session, progress: Progress) -> str:
    """Return the graph of a plan, aligned, in characters that the terminal has."""
    rows = [(f"{row.stem}{row.stand.item.id}", row.stand.state, _task(row.stand), _note(session, row)) for row in _rows(progress)]
    return table(session, ("ID", "STATE", "TASK", "NOTE"), rows, colour_by=1)


def _rows(progress: Progress) -> list[Row]:
    """Put every task below the one of its needs that comes last, which makes a tree of the graph; the others are noted."""
    place = {item.id: number for number, item in enumerate(in_order(progress.plan))}
    above = {item.id: max(item.needs, key=place.__getitem__, default=None) for item in progress.plan.items}
    return list(_below(progress, above, None, ""))


def _below(progress: Progress, above: dict[str, str | None], parent: str | None, stem: str) -> Iterator[Row]:
    middle, last, goes_on, is_over = _LINES[_has_lines()]
    children = [stand for stand in progress.stands if above[stand.item.id] == parent]
    for stand in children:
        is_last = stand is children[-1]
        joint = (last if is_last else middle) if parent else ""
        yield Row(stem=stem + joint, stand=stand, below=parent)
        deeper = stem + ((is_over if is_last else goes_on) if parent else "")
        yield from _below(progress, above, stand.item.id, deeper)


def _has_lines() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


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

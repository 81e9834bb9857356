"""How a plan stands, as `execute` and `plan show` tell it."""

import sys
from collections.abc import Iterator

import msgspec

from adjourn.cli.foreground import told
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.plan.document import plan_doc
from adjourn.core.plan.plan import ItemState, Progress, Stand, in_order
from adjourn.core.scene import Scene
from adjourn.core.states import ENDED
from adjourn.core.text.render import prose
from adjourn.supervision.manifest_file import project
from adjourn.supervision.workspace_notes import note_left
from adjourn.views.call import short, table
from adjourn.views.next_step import command, resume_hint

# By whether the terminal has them
_LINES = {True: ("├─ ", "└─ ", "│  ", "   "), False: ("|- ", "`- ", "|  ", "   ")}
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
    rows = [
        (f"{row.stem}{row.stand.item.id}", row.stand.state, _task(row.stand), _note(session, row))
        for row in drawing
    ]
    return table(session, ("ID", "STATE", "TASK", "NOTE"), rows, colour_by=1, least=_NOTE)


def _deepest(session: Session, progress: Progress) -> int:
    """Return how many steps to the right leave room for the names and for what stands beside them."""
    longest = max((len(stand.item.id) for stand in progress.stands), default=0)
    return min(_DEEPEST, max(_FEWEST, (session.columns - longest - _BESIDE) // 3))


def _rows(progress: Progress, *, deepest: int) -> list[Row]:
    """Put every task below the one of its needs that comes last, which makes a tree of the graph.

    The others are noted.
    """
    place = {item.id: number for number, item in enumerate(in_order(progress.plan))}
    above = {
        item.id: max(item.needs, key=place.__getitem__, default=None)
        for item in progress.plan.items
    }
    children: dict[str | None, list[Stand]] = {}
    for stand in progress.stands:
        children.setdefault(above[stand.item.id], []).append(stand)
    return list(_walked(children, above, deepest=deepest))


def _walked(
    children: dict[str | None, list[Stand]], above: dict[str, str | None], *, deepest: int
) -> Iterator[Row]:
    """Walk the tree from top to bottom.

    Without recursion, for a plan may be a thousand tasks deep.
    """
    middle, last, goes_on, is_over = _LINES[_has_lines()]
    waiting = [("", stand, 0) for stand in reversed(children.get(None, []))]
    while waiting:
        stem, stand, depth = waiting.pop()
        parent = above[stand.item.id]
        is_last = stand is children[parent][-1]
        joint = (last if is_last else middle) if parent else ""
        yield Row(
            stem=stem + joint if depth <= deepest else f"{_elided()}{depth} deep: ",
            stand=stand,
            below=parent,
        )
        deeper = stem + ((is_over if is_last else goes_on) if parent and depth <= deepest else "")
        waiting += [
            (deeper, child, depth + 1) for child in reversed(children.get(stand.item.id, []))
        ]


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


_EXIT_CODES = {"completed": exits.COMPLETED, "paused": exits.PAUSED, "failed": exits.FAILED}
_LEFT = frozenset({ItemState.WAITING, ItemState.PAUSED})
_CAME_TO_NOTHING = frozenset({ItemState.FAILED, ItemState.CANCELED})


def report_plan(session: Session, controller: Controller, progress: Progress, *, named: str) -> int:
    """Write the manifests of what is paused, say how the plan stands, and return the exit code for it."""
    scenes = list(_left_open(controller, progress))
    for scene in scenes:
        project(session, scene)
    if session.wants_json:
        say_plan(session, controller, progress, named=named)
    else:
        for scene in scenes:
            head = f"[{scene.task.spec.item}]\n" if len(scenes) > 1 else ""
            session.say(f"{head}{told(session, scene)}\n")
        session.say(
            "\n".join([drawn(session, progress), "", *_next_lines(session, progress, named=named)])
        )
    return _EXIT_CODES[progress.outcome]


def _left_open(controller: Controller, progress: Progress) -> Iterator[Scene]:
    for stand in progress.stands:
        if stand.task and stand.state in _LEFT:
            note_left(controller, stand.task)
            yield controller.scene(stand.task.id)


def say_plan(
    session: Session, controller: Controller | None, progress: Progress, *, named: str
) -> None:
    """Print how a plan stands as one document."""
    tasks = [
        stand.task for stand in progress.stands if stand.task and stand.task.state not in ENDED
    ]
    hints = (
        {task.id: resume_hint(session, controller.scene(task.id)) for task in tasks}
        if controller
        else {}
    )
    session.document(plan_doc(progress, hint=command(session, "execute", named), hints=hints))


def _next_lines(session: Session, progress: Progress, *, named: str) -> Iterator[str]:
    match progress.outcome:
        case "completed":
            yield "Completed: every task of the plan has succeeded."
            yield f"Begin anew with: {command(session, 'execute', named, '--anew')}"
        case "paused":
            yield f"Then: {command(session, 'execute', named)}"
        case "failed":
            came_to_nothing = [
                stand for stand in progress.stands if stand.task and stand.state in _CAME_TO_NOTHING
            ]
            yield f"Failed: {', '.join(stand.item.id for stand in came_to_nothing)}"
            yield from (
                f"Restart with: {command(session, 'restart', stand.task.id)}"
                for stand in came_to_nothing
                if stand.task
            )
            yield f"Then: {command(session, 'execute', named)}"

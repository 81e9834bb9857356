"""How a plan stands, as `execute` and `plan show` tell it."""

from collections.abc import Iterator

from adjourn.cli.foreground import told
from adjourn.cli.graph import drawn
from adjourn.cli.hint import resume_hint
from adjourn.cli.program import command
from adjourn.cli.projection import project
from adjourn.cli.session import Session
from adjourn.controller.whole import Controller
from adjourn.core import exits
from adjourn.core.plan import ItemState, Progress
from adjourn.core.plan_doc import plan_doc
from adjourn.core.scene import Scene
from adjourn.core.states import ENDED
from adjourn.traces import note_left

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
        session.say("\n".join([drawn(session, progress), "", *_next_lines(session, progress, named=named)]))
    return _EXIT_CODES[progress.outcome]


def _left_open(controller: Controller, progress: Progress) -> Iterator[Scene]:
    for stand in progress.stands:
        if stand.task and stand.state in _LEFT:
            note_left(controller, stand.task)
            yield controller.scene(stand.task.id)


def say_plan(session: Session, controller: Controller | None, progress: Progress, *, named: str) -> None:
    """Print how a plan stands as one document."""
    tasks = [stand.task for stand in progress.stands if stand.task and stand.task.state not in ENDED]
    hints = {task.id: resume_hint(session, controller.scene(task.id)) for task in tasks} if controller else {}
    session.document(plan_doc(progress, hint=command(session, "execute", named), hints=hints))


def _next_lines(session: Session, progress: Progress, *, named: str) -> Iterator[str]:
    match progress.outcome:
        case "completed":
            yield "Completed: every task of the plan has succeeded."
            yield f"Begin anew with: {command(session, 'execute', named, '--anew')}"
        case "paused":
            yield f"Then: {command(session, 'execute', named)}"
        case "failed":
            came_to_nothing = [stand for stand in progress.stands if stand.task and stand.state in _CAME_TO_NOTHING]
            yield f"Failed: {', '.join(stand.item.id for stand in came_to_nothing)}"
            yield from (f"Restart with: {command(session, 'restart', stand.task.id)}" for stand in came_to_nothing if stand.task)
            yield f"Then: {command(session, 'execute', named)}"

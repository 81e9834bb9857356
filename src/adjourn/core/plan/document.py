"""How a plan stands, as machines read it."""

from typing import Literal

import msgspec

from adjourn.core.plan.plan import ItemState, Progress, Stand
from adjourn.core.text.render import spelled


class PlanTask(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a plan."""

    id: str
    state: ItemState
    task_id: str | None
    runner: str
    needs: tuple[str, ...]
    lacks: tuple[str, ...]
    in_review: bool
    is_changed: bool
    calls_not_made: int
    message: str | None
    resume_hint: str | None


class PlanDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and how all of it stands."""

    schema_version: Literal[1] = 1
    outcome: Literal["completed", "paused", "failed"]
    plan: str
    workspace: str
    is_held: bool
    resume_hint: str
    tasks: tuple[PlanTask, ...]


def plan_doc(progress: Progress, *, hint: str, hints: dict[str, str]) -> PlanDoc:
    """Describe a plan; `hint` is the command that resumes it, `hints` those for single tasks."""
    plan = progress.plan
    tasks = tuple(
        _task(stand, hints.get(stand.task.id) if stand.task else None) for stand in progress.stands
    )
    return PlanDoc(
        outcome=progress.outcome,
        plan=plan.path,
        workspace=spelled(plan.workspace),
        is_held=progress.is_held,
        resume_hint=hint,
        tasks=tasks,
    )


def _task(stand: Stand, hint: str | None) -> PlanTask:
    return PlanTask(
        id=stand.item.id,
        state=stand.state,
        task_id=stand.task.id if stand.task else None,
        runner=stand.item.runner,
        needs=stand.item.needs,
        lacks=stand.lacks,
        in_review=stand.in_review,
        is_changed=stand.is_changed,
        calls_not_made=len(stand.unmade),
        message=stand.task.message if stand.task else None,
        resume_hint=hint,
    )

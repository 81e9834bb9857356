"""adjourn restart: run a task again from nothing."""

import os

import click

from adjourn.cli.foreground import report, run_detached, run_to_the_end, supervising
from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._workspace import require_own_repository
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH
from adjourn.controller.tasks import FromPlan
from adjourn.core.errors import AdjournError, Misuse
from adjourn.core.task import Task
from adjourn.core.text.render import prose, visible


@verb("restart")
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.option(
    "--detach", is_flag=True, help="Return at once; a copy of this command supervises the task."
)
@click.option("--workspace", metavar="PATH", help="The workspace, if it is not the current one.")
@click.option("--from-plan", is_flag=True, help="Run what its plan says now.")
def command(
    session: Session, *, task: str, detach: bool, workspace: str | None, from_plan: bool
) -> int:
    """Run a task again from nothing: a new run and a new session.

    Its history stays; its answers are asked for again.
    """
    session.require_store()
    if detach:
        return run_detached(
            session, lambda controller: _queued(session, controller, task, workspace, from_plan)
        )
    with supervising(session) as (controller, supervisor):
        found = _queued(session, controller, task, workspace, from_plan, supervisor=supervisor.name)
        return report(session, controller, run_to_the_end(session, supervisor, found))


def _queued(
    session: Session,
    controller: Controller,
    text: str,
    named: str | None,
    wants_plan: bool,  # noqa: FBT001 -- the option, as it was given
    *,
    supervisor: str | None = None,
) -> Task:
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    workspace = task.spec.workspace
    if os.path.isdir(workspace):
        require_own_repository(session, task, verb="restart", named=named)
    else:  # it begins elsewhere
        workspace = os.path.realpath(named) if named is not None else os.getcwd()
        if not os.path.isdir(workspace):
            raise Misuse(
                f"{visible(workspace)} is not a directory", way_out=f"adjourn restart {task.id}"
            )
    changed = _changed_plan(controller, task, is_required=wants_plan)
    if changed and not wants_plan:
        again = session.commands("restart", task.id, "--from-plan")
        session.warn(
            f"adjourn: {task.spec.item} does what it did: {prose(task.spec.plan or '')} says"
            f" something else of it now. To do that: {again}"
        )
    by = session.principal(controller.decisions)
    return controller.tasks.restart(
        task.id,
        by=by,
        workspace=workspace,
        supervisor=supervisor,
        from_plan=changed if wants_plan else None,
    )


def _changed_plan(controller: Controller, task: Task, *, is_required: bool) -> FromPlan | None:
    """Return what the plan of a task says of it now, if that is something else than it was."""
    if task.spec.plan is None:
        if is_required:
            raise Misuse(f"task {task.id} belongs to no plan", way_out=f"adjourn restart {task.id}")
        return None
    # Most tasks belong to no plan (bench start)
    from adjourn.core.plan.plan import words_of
    from adjourn.wiring.plan_files import open_plan, specs_of

    try:
        plan = open_plan(task.spec.plan)
        item = next((each for each in plan.items if each.id == task.spec.item), None)
        if item is None:
            raise Misuse(
                f"{visible(plan.path)} has no task {task.spec.item} any more",
                way_out=f"adjourn restart {task.id}",
            )
        specs = specs_of(plan, review=task.spec.review, parent_run=task.spec.parent_run)
        now = FromPlan(spec=specs[item.id], words=words_of(plan, item))
    except AdjournError:
        if is_required:
            raise
        return None  # a plan that is gone or broken keeps nobody from doing the same again
    then = controller.plans.words_of_begun(task)
    return now if is_required or then != now.words else None

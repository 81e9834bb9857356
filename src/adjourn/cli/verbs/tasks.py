"""adjourn tasks: list tasks."""

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.documents import spelled
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import title
from adjourn.core.text.when import ago, stamp
from adjourn.views.call import GIST, short, table
from adjourn.views.next_step import command as next_command


@verb("tasks")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in TaskState]),
    help="Only these; repeat it.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.option("--before", metavar="ID", help="Show those that are older than this one.")
def command(session: Session, *, states: tuple[str, ...], limit: int, before: str | None) -> None:
    """List tasks, newest first."""
    found = _found(session, tuple(TaskState(state) for state in states), limit, before)
    if session.wants_json:
        session.document({"schema_version": 1, "tasks": [_document(task) for task in found]})
        return
    if not found:
        session.say_nothing_found("No tasks.")
        return
    moment = session.now()
    rows = [
        (
            short(task.id),
            task.state,
            str(task.runs),
            ago(task.updated_at, now=moment),
            title(task.spec, columns=GIST),
        )
        for task in found
    ]
    session.say(table(session, ("TASK", "STATE", "RUNS", "CHANGED", "WHAT"), rows, colour_by=1))
    if any(task.state is TaskState.QUEUED for task in found):
        from adjourn.cli.unattended import unattended_lines  # seldom needed

        for line in unattended_lines(session, found, now=moment):
            session.say(f"\n{line}")
    if len(found) == limit:
        only = [word for state in states for word in ("--state", state)]
        session.say(
            f"\nolder: {next_command(session, 'tasks', *only, '--before', short(found[-1].id))}"
        )


def _found(
    session: Session, states: tuple[TaskState, ...], limit: int, before: str | None
) -> list[Task]:
    if not session.has_store:
        return []
    decisions = session.decisions
    start = decisions.find_task(before).id if before else None
    with decisions.store.read() as view:
        return view.tasks(states=states, limit=limit, before=start)


def _document(task: Task) -> dict[str, object]:
    return {
        "task_id": task.id,
        "state": task.state,
        "runner": task.spec.runner,
        "argv": [spelled(word) for word in task.spec.argv],
        "prompt": task.spec.prompt,
        "workspace": spelled(task.spec.workspace),
        "runs": task.runs,
        "session_id": task.session_id,
        "parent_run_id": task.spec.parent_run,
        "created_at": stamp(task.created_at),
        "updated_at": stamp(task.updated_at),
        "message": task.message,
    }

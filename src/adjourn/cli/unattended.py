"""Names queued tasks that nobody is about to start, and the command that starts them."""

from collections.abc import Sequence

from adjourn.cli.session import Session
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.views.next_step import command
from adjourn.wiring import living

_MOMENT_MS = 2_000  # that a detached supervisor may need to take its task


def unattended_lines(session: Session, tasks: Sequence[Task], *, now: int) -> list[str]:
    """Return what to print about those of the tasks that are queued while no worker is alive for them."""
    queued = [
        task
        for task in tasks
        if task.state is TaskState.QUEUED and now - task.updated_at > _MOMENT_MS
    ]
    if not queued:
        return []
    pools = {about.pool for about in living(session.root).values()}
    stuck = [task for task in queued if task.spec.pool not in pools]
    if not stuck:
        return []
    others = f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
    first = stuck[-1]  # the oldest
    return [
        f"Task {first.id}{others} is queued, and no worker is alive to start it: {command(session, 'resume', first.id)}"
    ]

"""Notes what a task's workspace has checked out at a pause, and what the task changed in it.

Also refuses a task whose workspace is gone.
"""

import os

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.diffstat import Noted
from adjourn.core.errors import CannotResume
from adjourn.core.kept_documents import BEFORE, CHANGES, HEAD, LEFT
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.workspace.git import Head, head_of


class PausedHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace had checked out when a run paused."""

    run: int
    head: Head


def require_workspace(controller: Controller, task: Task) -> None:
    """Refuse a task whose workspace is not where it was.

    The same work anywhere else is other work.
    """
    if os.path.isdir(task.spec.workspace):
        return
    with controller.store.read() as view:
        run = view.run(task.id, task.runs) if task.runs else None
    facts = [f"run {run.id}"] if run else []
    facts.append(task.spec.runner)
    if run and run.session_ref:
        facts.append(f"session {run.session_ref}")
    why = f"its workspace {task.spec.workspace} is not there any more"
    sentence = f"task {task.id} ({', '.join(facts)}) cannot be resumed: {why}"
    raise CannotResume(sentence, way_out=f"adjourn restart {task.id}")


def note_left(controller: Controller, task: Task) -> None:
    """Keep how a task that has stopped leaves its workspace, once for each time that it stops."""
    if task.state in {TaskState.WAITING, TaskState.PAUSED}:
        head = head_of(task.spec.workspace)
        if head and head_at_pause(controller, task) is None:
            paused = msgspec.json.encode(PausedHead(run=task.runs, head=head))
            controller.documents.keep(task.id, HEAD, paused)
    note_changes(controller, task)
    if not task.spec.review or task.state is TaskState.RUNNING or not task.runs:
        return
    if controller.documents.read(task.id, LEFT.of(task.runs)) is None:
        from adjourn.workspace.sketch import encoded, sketch_of  # seldom: most work is not reviewed

        left = encoded(sketch_of(task.spec.workspace))
        controller.documents.keep(task.id, LEFT.of(task.runs), left)


def head_at_pause(controller: Controller, task: Task) -> Head | None:
    """Return what the workspace had checked out when the last run paused, if that was noted."""
    kept = controller.documents.read(task.id, HEAD)
    left = msgspec.json.decode(kept, type=PausedHead) if kept else None
    return left.head if left and left.run == task.runs else None


def note_before(controller: Controller, task: Task) -> None:
    """Keep a sketch of the workspace before a task runs for the first time that is reviewed.

    What others have changed between its runs was there before it, too: it is not its work.
    """
    if not task.spec.review:
        return
    from adjourn.workspace.sketch import decoded, encoded, rebase, sketch_of  # as above

    now = sketch_of(task.spec.workspace)
    before = controller.documents.read(task.id, BEFORE)
    left = controller.documents.read(task.id, LEFT.of(task.runs - 1))  # this run is the next
    if before is None:
        controller.documents.keep(task.id, BEFORE, encoded(now))
    elif left is not None:
        rebased = rebase(decoded(before), decoded(left), now)
        controller.documents.keep(task.id, BEFORE, encoded(rebased))
        controller.documents.keep(task.id, LEFT.of(task.runs - 1), None)


def note_changes(controller: Controller, task: Task) -> None:
    """Keep what a task changed, once for each review of its work."""
    if task.state is not TaskState.WAITING or not task.spec.review:
        return
    before = controller.documents.read(task.id, BEFORE)
    noted = controller.documents.read(task.id, CHANGES)
    if before is None or (noted and noted.run == task.runs):
        return
    # Seldom: most work is not reviewed
    from adjourn.workspace.sketch import compare, decoded, sketch_of

    stat = compare(decoded(before), sketch_of(task.spec.workspace))
    controller.documents.keep(task.id, CHANGES, Noted(run=task.runs, stat=stat))

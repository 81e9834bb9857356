"""The one layout of tasks that are paused without an ask: why, since when, and what helps."""

from collections.abc import Sequence

import msgspec

from adjourn.core.agent.calls import Report
from adjourn.core.documents import is_resumable, pause_cause
from adjourn.core.errors import UnreadableRow
from adjourn.core.kept_documents import REPORT
from adjourn.core.states import TaskState
from adjourn.core.task import PauseReason, Run, Task
from adjourn.core.text.render import clipped, prose, title
from adjourn.core.text.when import ago, stamp
from adjourn.ports.store import View
from adjourn.views.block import Block, CommandBlock, CommandWriter, Table
from adjourn.views.call import GIST, short


class PausedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A paused task, its last run, and what that said of itself."""

    task: Task
    run: Run | None
    report: Report | None = None


class PausedDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is paused and asks nothing."""

    task_id: str
    pause_reason: PauseReason
    message: str | None
    paused_at: str
    resume_hint: str


def paused_tasks(view: View, *, limit: int) -> list[PausedTask]:
    """Return the tasks that are paused, with what their last runs said, newest first."""
    found: list[PausedTask] = []
    for task in view.tasks(states=(TaskState.PAUSED,), limit=limit):
        try:
            run = view.run(task.id, task.runs) if task.runs else None
            report = REPORT.of(task.runs).read(view, task.id) if task.spec.is_driven else None
        except UnreadableRow as error:
            error.note_in(view.unreadable)
        else:
            found.append(PausedTask(task=task, run=run, report=report))
    return found


def way_on(found: PausedTask, commands: CommandWriter, *, named: str | None = None) -> str:
    """Return the command that helps, ready to paste."""
    task, run, report = found.task, found.run, found.report
    if run and not is_resumable(task, run):
        return commands("restart", task.id)
    return commands("resume", named or task.id, *(report.resume_with if report else ()))


def paused_blocks(found: Sequence[PausedTask], commands: CommandWriter, *, now: int) -> list[Block]:
    """Lay out paused tasks, each with its reason, and below them what helps."""
    rows = [
        (
            short(each.task.id),
            pause_cause(each.task, each.run),
            ago(each.task.updated_at, now=now),
            clipped(
                prose(each.task.message)
                if each.task.message
                else title(each.task.spec, columns=GIST),
                columns=GIST,
            ),
        )
        for each in found
    ]
    blocks: list[Block] = [Table(head=("PAUSED", "REASON", "SINCE", "WHY"), rows=rows)]
    blocks += [
        CommandBlock("Go on with: ", way_on(each, commands, named=short(each.task.id)))
        for each in found
    ]
    return blocks


def paused_doc(found: PausedTask, commands: CommandWriter) -> PausedDoc:
    """Return the same for machines."""
    task, run = found.task, found.run
    return PausedDoc(
        task_id=task.id,
        pause_reason=pause_cause(task, run),
        message=task.message,
        paused_at=stamp((run.paused_at if run else None) or task.updated_at),
        resume_hint=way_on(found, commands),
    )

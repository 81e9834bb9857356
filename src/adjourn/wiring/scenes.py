"""Gathers what views lay out: a task with all that belongs to it, a conversation, a plan."""

import msgspec

from adjourn.clarifications.exchange import why_refused
from adjourn.clarifications.protocol_files import clarification_doc
from adjourn.controller.controller import Controller
from adjourn.core.agent.transcript import Message, decoded
from adjourn.core.call import Call
from adjourn.core.documents import (
    ClarificationDoc,
    ResumabilityDoc,
    WorkspaceDoc,
    resumability_doc,
)
from adjourn.core.errors import Conflict
from adjourn.core.kept_documents import BEGAN, ORIGINAL
from adjourn.core.plan.plan import ItemState, Progress
from adjourn.core.redact import Redactor
from adjourn.core.scene import Scene
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import Cut, prose, spelled
from adjourn.core.trail.durations import time_spent, time_words
from adjourn.core.trail.events import Event
from adjourn.supervision.workspace_notes import head_at_pause, note_changes, note_left
from adjourn.views.agent import resumability_blocks
from adjourn.views.block import BLANK, Block, CommandWriter, line, unattended_block
from adjourn.views.task import (
    all_calls,
    clarification_blocks,
    history_blocks,
    resume_hint,
    settled_blocks,
    task_blocks,
    work_blocks,
)
from adjourn.views.workspace import workspace_blocks
from adjourn.wiring import find_unattended, has_responses, has_worker
from adjourn.wiring.runners import check_resumability, read_transcript
from adjourn.workspace.git import changed_since, head_of

_MOST_PATHS = 50  # of a workspace


class WholeTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its surroundings and its past, as `show` shows it."""

    scene: Scene
    workspace: WorkspaceDoc | None  # what changed there since the task paused
    resumability: ResumabilityDoc | None  # of an agent whose session lies outside of the store
    clarification: ClarificationDoc | None  # that it waits for, and where its files are
    refused_response: str | None  # why a response file was not taken
    events: list[Event]
    calls: list[tuple[Call, bytes | None]]  # each with what it was before somebody edited it


def gather_task(
    controller: Controller, root: str, task: Task, *, commands: CommandWriter, shows_all: bool
) -> WholeTask:
    """Return a task with all that there is to show of it. What it changed is noted for a review."""
    note_changes(controller, task)
    scene = controller.scene(task.id)
    with controller.store.read() as view:
        events = view.events(task.id)
        calls = view.calls(task.id)
    return WholeTask(
        scene=scene,
        workspace=workspace_since(controller, scene, shows_all=shows_all),
        resumability=resumability_of(controller, scene.task, commands=commands),
        clarification=clarification_doc(root, scene),
        refused_response=why_refused(root, task.id) if has_responses(root) else None,
        events=events,
        calls=[
            (call, controller.documents.read(task.id, ORIGINAL.of(call.tool_call_id)))
            for call in calls
        ],
    )


def task_page(
    controller: Controller,
    root: str,
    whole: WholeTask,
    *,
    commands: CommandWriter,
    cut: Cut,
    shows_all: bool = False,
) -> list[Block]:
    """Lay out a task as `show` does: how it stands, what it is, what changed, what happened."""
    scene, now = whole.scene, controller.now()
    is_attended = has_worker(root, scene.task.spec.pool)
    blocks = task_blocks(scene, commands, now=now, cut=cut, has_worker=is_attended)
    if stuck := find_unattended(root, [scene.task], now=now):
        blocks.append(unattended_block(stuck, commands))
    blocks.append(BLANK)
    if whole.refused_response:
        why = prose(whole.refused_response)
        blocks += [line(f"the response file is not taken: {why}"), BLANK]
    blocks += work_blocks(scene, cut=cut)
    if whole.clarification:
        blocks += clarification_blocks(whole.clarification)
    blocks.append(line(time_words(time_spent(whole.events), now=now)))
    if whole.workspace:
        blocks += [BLANK, *workspace_blocks(whole.workspace)]
    if whole.resumability:
        blocks += [BLANK, *resumability_blocks(whole.resumability)]
    if settled := settled_blocks(scene, cut=cut):
        blocks += [BLANK, *settled]
    if shows_all:
        blocks += [BLANK, *all_calls(whole.calls, not_made=scene.not_made, cut=cut)]
    return [*blocks, BLANK, *history_blocks(whole.events, shows_all=shows_all)]


def workspace_since(
    controller: Controller, scene: Scene, *, shows_all: bool = False
) -> WorkspaceDoc | None:
    """Return what changed since a task paused. Nothing of the repository is run for it."""
    run, workspace = scene.run, scene.task.spec.workspace
    is_paused = scene.task.state in {TaskState.WAITING, TaskState.PAUSED}
    if not is_paused or run is None or run.paused_at is None:
        return None
    then, now = head_at_pause(controller, scene.task), head_of(workspace)
    changes = changed_since(workspace, run.paused_at)
    shown = changes.paths if shows_all else changes.paths[:_MOST_PATHS]
    return WorkspaceDoc(
        head_then=then.commit if then else None,
        head_now=now.commit if now else None,
        ref_then=then.ref if then else None,
        ref_now=now.ref if now else None,
        changed=tuple(map(spelled, shown)),
        changed_count=len(changes.paths),
        looked_at=changes.looked_at,
        is_whole=changes.is_whole,
    )


def resumability_of(
    controller: Controller, task: Task, *, commands: CommandWriter
) -> ResumabilityDoc | None:
    """Check all that a resume of an agent would need; None for a command."""
    if not task.spec.is_driven:
        return None
    return resumability_doc(
        check_resumability(controller, task), restart=commands("restart", task.id)
    )


def kept_transcript(controller: Controller, task: Task, *, shows_all: bool) -> list[Message]:
    """Return the conversation of an agent, without what the built-in one had before a fork.

    That of Claude Code and Codex is read from their own files, or from the copy in the store.
    """
    began = 0 if shows_all else controller.documents.read(task.id, BEGAN) or 0
    bodies = controller.agents.messages(task.id, after=began)
    messages = [decoded(body) for body in bodies] or read_transcript(controller, task)
    if not messages:
        raise Conflict(f"task {task.id} has no conversation", way_out=f"adjourn logs {task.id}")
    return messages


def note_paused_items(controller: Controller, progress: Progress) -> list[Scene]:
    """Note how the paused tasks of a plan leave their workspaces, and return their scenes."""
    scenes: list[Scene] = []
    for stand in progress.stands:
        if stand.task and stand.state in {ItemState.WAITING, ItemState.PAUSED}:
            note_left(controller, stand.task)
            scenes.append(controller.scene(stand.task.id))
    return scenes


def item_hints(
    controller: Controller, progress: Progress, *, commands: CommandWriter
) -> dict[str, str]:
    """Return the command that goes on with each unfinished task of a plan, by the task's id."""
    tasks = [stand.task for stand in progress.stands if stand.task]
    return {
        task.id: resume_hint(controller.scene(task.id), commands)
        for task in tasks
        if task.state not in ENDED
    }


def redacted_progress(progress: Progress, redactor: Redactor) -> Progress:
    """Return a plan's state without secrets in the messages of its tasks."""
    replace = msgspec.structs.replace
    stands = tuple(
        replace(
            stand,
            task=redactor.task(stand.task),
            unmade=tuple(redactor.call(call) for call in stand.unmade),
        )
        if stand.task
        else stand
        for stand in progress.stands
    )
    return replace(progress, stands=stands)

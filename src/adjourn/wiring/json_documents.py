"""The JSON documents of lists and replies: one function each, for every surface."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from adjourn.controller.controller import Controller
from adjourn.controller.decisions import Decisions
from adjourn.controller.standing import report_of
from adjourn.controller.transaction import call_asked_about, readable_call
from adjourn.core.ask import Ask
from adjourn.core.call import command_of
from adjourn.core.documents import (
    AskDoc,
    Manifest,
    RunDoc,
    TaskDoc,
    UnreadableDoc,
    ask_doc,
    manifest_of,
    run_doc,
    task_doc,
    unreadable_docs,
)
from adjourn.core.errors import NotFound, UnreadableRow
from adjourn.core.kept_documents import NOT_MADE, ORIGINAL, WHY
from adjourn.core.states import ENDED, AskState, TaskState
from adjourn.core.task import Milliseconds, Run, Task
from adjourn.core.trail.durations import run_ends
from adjourn.core.trail.events import Receipt
from adjourn.ports.store import View
from adjourn.views.block import CommandWriter
from adjourn.views.paused import PausedDoc, paused_doc, paused_tasks
from adjourn.views.task import resume_hint
from adjourn.wiring.scenes import WholeTask

_PAGE = 200  # asks that are read at a time
_EVENTS = 500  # events that are read at a time
_SETTLED = frozenset(f"ask_{state}" for state in AskState if state is not AskState.PENDING)


class InboxDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a person."""

    schema_version: Literal[1] = 1
    count: int
    snoozed: int
    asks: tuple[AskDoc, ...]
    paused: tuple[PausedDoc, ...]
    unreadable: tuple[UnreadableDoc, ...] | msgspec.UnsetType = msgspec.UNSET


class TasksDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, newest first."""

    schema_version: Literal[1] = 1
    tasks: tuple[TaskDoc, ...]
    unreadable: tuple[UnreadableDoc, ...] | msgspec.UnsetType = msgspec.UNSET


class RunsDoc(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a task, oldest first."""

    schema_version: Literal[1] = 1
    runs: tuple[RunDoc, ...]


class RecordedDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Replies that were recorded: their asks, how the tasks stand now, and the proof."""

    schema_version: Literal[1] = 1
    outcome: Literal["recorded"] = "recorded"
    store: str | msgspec.UnsetType = msgspec.UNSET  # where it is not the nearest
    asks: tuple[AskDoc, ...]
    tasks: dict[str, TaskState]
    receipts: tuple[Receipt, ...]


class SnoozedDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Asks that were snoozed, or are shown again."""

    schema_version: Literal[1] = 1
    outcome: Literal["recorded"] = "recorded"
    asks: tuple[AskDoc, ...]


def filtered_asks(
    view: View,
    *,
    now: Milliseconds,
    kind: str | None,
    task: str | None,
    requester: str | None,
    limit: int,
    after: str | None,
) -> list[Ask]:
    """Return the open asks that fit, page by page, so that few of very many cost little."""
    if kind is None and task is None and requester is None:
        return view.open_asks(limit=limit, after=after, awake_at=now)
    found: list[Ask] = []
    while len(found) < limit:
        page = view.open_asks(limit=_PAGE, after=after, awake_at=now)
        found += [
            ask
            for ask in page
            if kind in {None, ask.kind}
            and task in {None, ask.task_id}
            and (requester is None or view.requester(ask.task_id) == requester)
        ]
        if len(page) < _PAGE:
            break
        after = page[-1].id
    return found[:limit]


def settled_asks(view: View, *, before: int | None, limit: int) -> list[tuple[int, Ask]]:
    """Return the asks that were settled last, newest first, each with its place in the trail."""
    found: list[tuple[int, Ask]] = []
    upto = view.trail_head()[0] if before is None else before - 1
    while upto > 0 and len(found) < limit:
        start = max(0, upto - _EVENTS)
        for happened in reversed(view.happened(after=start, limit=_EVENTS)):
            if happened.place > upto or happened.event.kind not in _SETTLED:
                continue
            with suppress(NotFound, UnreadableRow):  # it was pruned, or cannot be read
                found.append((happened.place, view.ask(str(happened.event.facts.get("ask")))))
        upto = start
    return found[:limit]


def listed_asks(view: View, asks: Iterable[Ask]) -> tuple[AskDoc, ...]:
    """Describe asks as a list has them."""
    return tuple(
        ask_doc(ask, readable_call(view, ask), why=WHY.of(ask.id).read(view, ask.task_id))
        for ask in asks
    )


def inbox_doc(
    view: View,
    asks: Iterable[Ask],
    *,
    snoozed: int,
    limit: int,
    commands: CommandWriter,
) -> InboxDoc:
    """Describe a page of the inbox, and what is missing in it because it cannot be read."""
    listed = listed_asks(view, asks)
    paused = tuple(paused_doc(each, commands) for each in paused_tasks(view, limit=limit))
    return InboxDoc(
        count=view.count_open_asks(),
        snoozed=snoozed,
        asks=listed,
        paused=paused,
        unreadable=unreadable_docs(list(view.unreadable.values())) or msgspec.UNSET,
    )


def count_unmade(view: View, tasks: Iterable[Task]) -> dict[str, int]:
    """Return how many approved calls of agents were never made, by the task."""
    return {
        task.id: len(NOT_MADE.read(view, task.id) or ())
        for task in tasks
        if task.spec.is_driven and task.state in ENDED
    }


def tasks_doc(
    tasks: Iterable[Task], unmade: dict[str, int], unreadable: Sequence[UnreadableRow] = ()
) -> TasksDoc:
    """Describe a list of tasks."""
    return TasksDoc(
        tasks=tuple(task_doc(task, calls_not_made=unmade.get(task.id, 0)) for task in tasks),
        unreadable=unreadable_docs(unreadable) or msgspec.UNSET,
    )


def runs_doc(view: View, task: Task, runs: Iterable[Run]) -> RunsDoc:
    """Describe the runs of a task."""
    ends = run_ends(view.events(task.id))
    documents: list[RunDoc] = []
    for run in runs:
        report = report_of(view, run) if task.spec.is_driven else None
        workspace = command_of(view.call(task.id, run.call).body).cwd
        ended_at = ends.get(run.number)
        documents.append(run_doc(task, run, workspace=workspace, report=report, ended_at=ended_at))
    return RunsDoc(runs=tuple(documents))


def shown_ask_doc(controller: Controller, ask: Ask) -> AskDoc:
    """Describe one ask, with what its call was before somebody edited it."""
    scene = controller.scene_of(ask)
    return ask_doc(
        ask, scene.call_of(ask), original=scene.original_of(ask), why=scene.why.get(ask.id)
    )


def shown_task_doc(whole: WholeTask, commands: CommandWriter) -> Manifest:
    """Describe a task with its surroundings."""
    return msgspec.structs.replace(
        manifest_of(whole.scene, hint=resume_hint(whole.scene, commands)),
        workspace=whole.workspace or msgspec.UNSET,
        resumability=whole.resumability or msgspec.UNSET,
        clarification=whole.clarification or msgspec.UNSET,
    )


def recorded_doc(
    decisions: Decisions, settled: Sequence[Ask], *, store: str | None = None
) -> RecordedDoc:
    """Describe replies that were just recorded."""
    receipts = decisions.receipts(settled)
    with decisions.store.read() as view:
        calls = [call_asked_about(view, ask) for ask in settled]
        # What a call was before it was edited; several are never edited at once
        only = calls[0] if len(calls) == 1 else None
        original = ORIGINAL.read_of(view, only) if only else None
        documents = [
            ask_doc(ask, call, original=original, why=WHY.of(ask.id).read(view, ask.task_id))
            for ask, call in zip(settled, calls, strict=True)
        ]
        tasks = {ask.task_id: view.task(ask.task_id).state for ask in settled}
    return RecordedDoc(
        store=store or msgspec.UNSET,
        asks=tuple(documents),
        tasks=tasks,
        receipts=tuple(receipts),
    )


def snoozed_doc(decisions: Decisions, snoozed: Iterable[Ask]) -> SnoozedDoc:
    """Describe asks that were snoozed, or are shown again."""
    with decisions.store.read() as view:
        return SnoozedDoc(
            asks=tuple(
                ask_doc(
                    ask, call_asked_about(view, ask), why=WHY.of(ask.id).read(view, ask.task_id)
                )
                for ask in snoozed
            )
        )

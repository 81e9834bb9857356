"""What inbox, tasks and deciding verbs do with all stores of a user."""

from collections.abc import Sequence

import msgspec

from adjourn.cli.named_rows import NamedRow, keep_rows
from adjourn.cli.session import Session
from adjourn.cli.verbs._home_of_asks import all_roots, short_store_name
from adjourn.controller.transaction import readable_call
from adjourn.core.ask import ApprovalAsk, Ask
from adjourn.core.documents import ask_doc, task_doc
from adjourn.core.kept_documents import NOT_MADE, WHY
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import prose, title
from adjourn.core.text.when import ago
from adjourn.ports.store import View
from adjourn.system.machine import now
from adjourn.views.ask_row import ask_row
from adjourn.views.block import BLANK, Block, Table, line
from adjourn.views.call import GIST, unique_name, unmade_words
from adjourn.views.paused import PausedTask, paused_blocks, paused_doc, paused_tasks
from adjourn.wiring import name_of_store, open_decisions
from adjourn.wiring.all_stores import StoreRead, read_each


class _Listed(msgspec.Struct, kw_only=True):
    """What one store adds to a list: rows with the moment by which they are sorted, documents."""

    rows: list[tuple[Milliseconds, tuple[str, ...]]]
    named: list[NamedRow] = []  # what each row is about
    documents: list[object] = []
    paused: list[object] = []  # as documents
    paused_tasks: list[PausedTask] = []
    count: int = 0
    snoozed: int = 0
    has_more: bool = False


def print_inbox(session: Session, *, limit: int, snoozed: bool) -> None:
    """Print the asks of all stores, oldest first, each with its store, then the paused tasks."""
    redactor = session.redactor_of_text

    def read(root: str) -> _Listed:
        decisions = open_decisions(root)
        moment = decisions.now()
        with decisions.store.read() as view:
            found = (
                view.snoozed_asks(now=moment, limit=limit + 1)
                if snoozed
                else view.open_asks(limit=limit + 1, awake_at=moment)
            )
            rows: list[tuple[Milliseconds, tuple[str, ...]]] = [
                (
                    ask.created_at,
                    ask_row(view, ask, now=moment, redactor=redactor, full_ids=session.full_ids),
                )
                for ask in found[:limit]
            ]
            calls = [readable_call(view, ask) for ask in found[:limit]]
            listed = _Listed(
                rows=rows,
                named=[
                    NamedRow(
                        store=root,
                        id=ask.id,
                        digest=call.digest if call and isinstance(ask, ApprovalAsk) else None,
                    )
                    for ask, call in zip(found[:limit], calls, strict=True)
                ],
                count=view.count_open_asks(),
                snoozed=view.count_snoozed_asks(now=moment),
                has_more=len(found) > limit,
            )
            if not snoozed:
                listed.paused_tasks = paused_tasks(view, limit=limit)
            if session.wants_json:
                _add_documents(session, view, listed, found[:limit], root)
        decisions.store.close()
        return listed

    results = read_each(all_roots(session), read)
    listed = [result.found for result in results if result.found]
    if session.wants_json:
        session.print_document(
            {
                "schema_version": 1,
                "count": sum(each.count for each in listed),
                "snoozed": sum(each.snoozed for each in listed),
                "asks": [document for each in listed for document in each.documents],
                "paused": [document for each in listed for document in each.paused],
                "stores": _store_documents(results),
            }
        )
        return
    head = ("ASK", "KIND", "TASK", "BACK" if snoozed else "SINCE", "STORE", "WHAT")
    nothing = "Nothing is snoozed." if snoozed else "Nothing waits for you in any of your stores."
    has_paused = any(each.paused_tasks for each in listed)
    if has_paused and not any(each.rows for each in listed):
        nothing = "No open asks in any of your stores."
    _print_rows(session, results, head, limit=limit, nothing=nothing, newest_first=False)
    for result in results:
        if result.found and (paused := result.found.paused_tasks):
            if redactor:
                paused = [
                    msgspec.structs.replace(each, task=redactor.task(each.task)) for each in paused
                ]
            commands = session.commands_for(result.root)
            session.show([BLANK, *paused_blocks(paused, commands, now=now())])


def _add_documents(
    session: Session, view: View, listed: _Listed, asks: Sequence[Ask], root: str
) -> None:
    store = {"store": name_of_store(root)}
    for ask in asks:
        document = ask_doc(
            ask, readable_call(view, ask), why=WHY.of(ask.id).read(view, ask.task_id)
        )
        listed.documents.append(msgspec.to_builtins(document) | store)
    for each in listed.paused_tasks:
        commands = session.commands_for(root)
        listed.paused.append(msgspec.to_builtins(paused_doc(each, commands)) | store)


def print_tasks(session: Session, *, states: tuple[TaskState, ...], limit: int) -> None:
    """Print the tasks of all stores, newest first, each with its store."""
    redactor = session.redactor_of_text

    def read(root: str) -> _Listed:
        decisions = open_decisions(root)
        moment = decisions.now()
        with decisions.store.read() as view:
            found = view.tasks(states=states, limit=limit + 1)
            unmade = {
                task.id: len(NOT_MADE.read(view, task.id) or ())
                for task in found
                if task.spec.is_driven and task.state in ENDED
            }
            names = {
                task.id: task.id if session.full_ids else unique_name(view.tasks_like, task.id)
                for task in found
            }
        decisions.store.close()
        listed = _Listed(rows=[], has_more=len(found) > limit)
        for task in found[:limit]:
            clean = redactor.task(task) if redactor else task
            changed = ago(task.updated_at, now=moment)
            what = title(clean.spec, columns=GIST)
            if count := unmade.get(task.id):
                what = f"{unmade_words(count)}: {what}"
            row = (names[task.id], task.state, str(task.runs), changed, what)
            listed.rows.append((task.updated_at, row))
            listed.named.append(NamedRow(store=root, id=task.id))
            if session.wants_json:
                document = task_doc(task, calls_not_made=unmade.get(task.id, 0))
                listed.documents.append(
                    msgspec.to_builtins(document) | {"store": name_of_store(root)}
                )
        return listed

    results = read_each(all_roots(session), read)
    if session.wants_json:
        documents = [each for result in results if result.found for each in result.found.documents]
        session.print_document(
            {"schema_version": 1, "tasks": documents, "stores": _store_documents(results)}
        )
        return
    head = ("TASK", "STATE", "RUNS", "CHANGED", "STORE", "WHAT")
    nothing = "No tasks in any of your stores."
    _print_rows(session, results, head, limit=limit, nothing=nothing, newest_first=True)


def _print_rows(
    session: Session,
    results: Sequence[StoreRead[_Listed]],
    head: tuple[str, ...],
    *,
    limit: int,
    nothing: str,
    newest_first: bool,
) -> None:
    """Print the rows of all stores in one table, sorted by time, and what could not be read."""
    found = [
        (moment, (*row[:-1], short_store_name(result.root), row[-1]), named)
        for result in results
        if result.found
        for (moment, row), named in zip(result.found.rows, result.found.named, strict=True)
    ]
    found.sort(key=lambda each: each[0], reverse=newest_first)
    blocks: list[Block] = []
    if found:
        rows = [row for _, row, _ in found[:limit]]
        keep_rows([named for _, _, named in found[:limit]])
        blocks.append(Table(head=head, rows=rows, state_column=1))
    else:
        blocks.append(line(nothing))
    if len(found) > limit or any(result.found and result.found.has_more for result in results):
        blocks += [BLANK, line("There are more: add --limit N.")]
    session.show(blocks)
    for result in results:
        if result.trouble:
            session.warn(f"adjourn: {prose(name_of_store(result.root))}: {prose(result.trouble)}")


def _store_documents(results: Sequence[StoreRead[_Listed]]) -> list[dict[str, object]]:
    return [{"store": name_of_store(result.root), "error": result.trouble} for result in results]

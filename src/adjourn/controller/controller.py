"""The whole controller: the only place where a task changes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from adjourn.controller.agents import Agents
from adjourn.controller.context import Context
from adjourn.controller.decisions import Decisions
from adjourn.controller.runs import Runs
from adjourn.controller.standing import report_of, standing_of
from adjourn.controller.tasks import Tasks
from adjourn.controller.transaction import call_asked_about
from adjourn.core.ask import ApprovalAsk, Ask, AskReason, QuestionAsk, is_review
from adjourn.core.call import COMMAND, Call
from adjourn.core.errors import NotFound
from adjourn.core.kept_documents import CHANGES, CLARIFICATION, COPIES, NOT_MADE, ORIGINAL, WHY
from adjourn.core.scene import AskedTogether, Scene
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Task
from adjourn.ports.store import Change, View

if TYPE_CHECKING:  # to resume a command is a hot path, and needs none of these (bench resume)
    from adjourn.controller.asks import Asks
    from adjourn.controller.delegations import Delegations
    from adjourn.controller.plans import Plans
    from adjourn.controller.signing import Signing
from typing import TypeVar

from adjourn.core.kept_documents import TaskDocument

T = TypeVar("T")


class Documents:
    """Reads and keeps documents of tasks, one transaction each."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def read(self, task_id: str, document: TaskDocument[T]) -> T | None:
        """Return what a task keeps, if anything."""
        with self._context.store.read() as view:
            return document.read(view, task_id)

    def keep(self, task_id: str, document: TaskDocument[T], value: T | None) -> None:
        """Keep a value in the place of what was there; None keeps nothing."""
        with self._context.change() as tx:
            if value is None:
                document.drop(tx.rows, task_id)
            else:
                document.keep(tx.rows, task_id, value)

    def keep_with(self, write: Callable[[Change], None]) -> None:
        """Keep documents of the store, or several that belong together; it moves no task."""
        with self._context.change() as tx:
            write(tx.rows)

    def read_named(self, task_id: str, name: str) -> bytes | None:
        """Return what a driver keeps with its task under a name, if anything."""
        with self._context.store.read() as view:
            return view.document(task_id, name)

    def keep_named(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep what a driver wants to keep with its task; None keeps nothing."""
        with self._context.change() as tx:
            tx.rows.keep_document(task_id, name, body)


class Controller:
    """Applies the rules.

    Every surface and every supervisor calls it; nothing else writes to the store.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.store = context.store  # for reading
        self.now = context.clock
        self.decisions = Decisions(context)
        self.documents = Documents(context)
        self.agents = Agents(context)
        self.runs = Runs(context, self.agents)
        self.tasks = Tasks(context, decisions=self.decisions, runs=self.runs)

    @cached_property
    def signing(self) -> "Signing":
        """What people decide elsewhere and somebody carries here."""
        from adjourn.controller.signing import Signing  # only signed decisions need it

        return Signing(self._context, self.decisions)

    @cached_property
    def asks(self) -> "Asks":
        """What running processes ask."""
        from adjourn.controller.asks import Asks  # only what runs inside, and files, need it

        return Asks(self._context, self.decisions)

    @cached_property
    def delegations(self) -> "Delegations":
        """What agents may decide for people."""
        from adjourn.controller.delegations import Delegations  # few agents decide anything

        return Delegations(self._context)

    @cached_property
    def plans(self) -> "Plans":
        """The tasks of plans."""
        from adjourn.controller.plans import Plans  # only `execute` and `plan` need it

        return Plans(self._context, tasks=self.tasks, runs=self.runs)

    def scene(self, task_id: str) -> Scene:
        """Return a task with its last run and the asks of it, as of one moment."""
        with self.store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.runs else None
            asks = tuple(view.asks_of_run(task_id, task.runs))
            called = [call for ask in asks if (call := call_asked_about(view, ask))]
            calls = {call.number: call for call in called}
            children = (
                standing_of(view, task, run).open_children
                if run and task.state is TaskState.WAITING
                else ()
            )
            report = report_of(view, run) if run and task.spec.is_driven else None
            noted = CHANGES.read(view, task_id) if any(is_review(ask) for ask in asks) else None
            # A command that asked nothing has no calls but the one that runs it
            has_calls = task.spec.is_driven or task.asks
            made = (
                [call for call in view.calls(task_id) if call.tool != COMMAND] if has_calls else ()
            )
            return Scene(
                task=task,
                run=run,
                asks=asks,
                calls=calls,
                waiting_on=children,
                report=report,
                replaced=_replaced_calls(view, asks),
                originals=_originals(view, asks, calls),
                all_calls=tuple(made),
                not_made=frozenset((NOT_MADE.read(view, task_id) or ()) if made else ()),
                why=_reasons(view, asks),
                copies=_copies(view, asks),
                clarification=_clarification(view, task, asks),
                changes=noted.stat if noted and noted.run == task.runs else None,
            )

    def scene_of(self, ask: Ask) -> Scene:
        """Return the scene of an ask's task; the ask may be of an earlier run."""
        scene = self.scene(ask.task_id)
        if ask.id in {each.id for each in scene.asks}:
            return scene
        with self.store.read() as view:
            called = call_asked_about(view, ask)
            calls = {called.number: called} if called else {}
            return msgspec.structs.replace(
                scene,
                asks=(ask,),
                calls=calls,
                replaced=_replaced_calls(view, [ask]),
                originals=_originals(view, [ask], calls),
                why=_reasons(view, [ask]),
                copies=_copies(view, [ask]),
            )


def _replaced_calls(view: View, asks: Sequence[Ask]) -> dict[str, Call]:
    """Return the calls of earlier asks that these asks replace, by the id of the newer ask."""
    replaced: dict[str, Call] = {}
    for ask in asks:
        if not isinstance(ask, ApprovalAsk) or ask.replaces is None:
            continue
        with suppress(NotFound):
            if call := call_asked_about(view, view.ask(ask.replaces)):
                replaced[ask.id] = call
    return replaced


def _reasons(view: View, asks: Sequence[Ask]) -> dict[str, AskReason]:
    """Return why the asks that want an approval are asked, by their ids."""
    found = {
        ask.id: WHY.of(ask.id).read(view, ask.task_id)
        for ask in asks
        if isinstance(ask, ApprovalAsk)
    }
    return {ask_id: why for ask_id, why in found.items() if why}


def _copies(view: View, asks: Sequence[Ask]) -> dict[str, dict[str, str | None]]:
    """Return the kept texts of files, of open approvals and of those that they replace."""
    approvals = [ask for ask in asks if isinstance(ask, ApprovalAsk) and ask.is_open]
    ids = [name for ask in approvals for name in (ask.id, ask.replaces) if name]
    found = {name: COPIES.of(name).read(view, approvals[0].task_id) for name in ids}
    return {name: texts for name, texts in found.items() if texts}


def _clarification(view: View, task: Task, asks: Sequence[Ask]) -> AskedTogether | None:
    """Return the clarification that a task waits for, if it waits for one."""
    waits = {ask.id for ask in asks if isinstance(ask, QuestionAsk) and ask.is_open}
    found = CLARIFICATION.read(view, task.id) if waits and not task.wish else None
    if found is None or waits.isdisjoint(found.asks):
        return None
    return AskedTogether(id=found.id, asked_at=found.asked_at)


def _originals(view: View, asks: Sequence[Ask], calls: Mapping[int, Call]) -> dict[int, bytes]:
    """Return the bytes of approved calls as they were before a person edited them."""
    found: dict[int, bytes] = {}
    for ask in asks:
        if isinstance(ask, ApprovalAsk) and (ask.state is AskState.APPROVED or ask.given):
            original = ORIGINAL.read_of(view, calls[ask.call])
            if original is not None:
                found[ask.call] = original
    return found

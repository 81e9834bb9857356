"""A plan: tasks that need one another, how each stands, and which can be started now."""

from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Literal

import msgspec

from adjourn.core.call import Call, canonical, portable
from adjourn.core.states import TaskState
from adjourn.core.task import Task


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a plan, as its file has it."""

    id: str
    line: int
    runner: str
    command: tuple[str, ...] = ()
    prompt: str | None = None
    options: dict[str, str] = {}
    needs: tuple[str, ...] = ()
    review: bool = False
    pause_on_approval: bool | None = None  # None: as its runner has it
    grace: float | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan's file says; its needs name its own tasks, and never go round in a circle."""

    path: str
    workspace: str
    items: tuple[Item, ...]


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The task that was begun for an item, and a digest of the words that it was begun with."""

    task_id: str
    words: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What was begun of a plan, by the ids of its items."""

    path: str
    items: dict[str, Begun] = {}
    # After a pause: workers start nothing of it before somebody says `execute` or `resume`
    is_held: bool = False


def words_of(plan: Plan, item: Item) -> str:
    """Return a digest of what an item does.

    Another one is other work, whatever else the plan says of it.
    """
    words = [
        item.runner,
        item.command,
        item.prompt,
        item.options,
        bool(item.pause_on_approval),
        portable(plan.workspace),
    ]
    return sha256(canonical(words)).hexdigest()


class ItemState(StrEnum):
    """How an item stands: as its task does, or why it has none yet."""

    PENDING = "pending"  # what it needs is not done
    READY = "ready"
    BLOCKED = "blocked"  # what it needs has failed, or was canceled
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


_DEAD = frozenset({ItemState.FAILED, ItemState.CANCELED, ItemState.BLOCKED})


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of an item that was begun.

    Without its task, that one is done and was forgotten.
    """

    task: Task | None
    is_changed: bool = False
    in_review: bool = False
    unmade: tuple[Call, ...] = ()


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """How one item of a plan stands."""

    item: Item
    state: ItemState
    task: Task | None = None
    is_changed: bool = False  # the plan's entry changed after its task began
    in_review: bool = False
    unmade: tuple[Call, ...] = ()  # approved calls that its agent never made
    lacks: tuple[str, ...] = ()  # of its needs, those that are not done

    @property
    def holds_the_plan(self) -> bool:
        """Whether nothing else may start before a person has said how this one goes on."""
        return self.state is ItemState.PAUSED or self.in_review

    @property
    def can_start(self) -> bool:
        """Whether it may be started now."""
        return self.state in {ItemState.READY, ItemState.QUEUED} and not self.lacks


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan stands, item by item, as its file has them."""

    plan: Plan
    stands: tuple[Stand, ...]
    is_held: bool = False  # one of its tasks was paused, and nobody has gone on since

    @property
    def next(self) -> Stand | None:
        """What to do now: what runs, else the first that can start; None if a person is first."""
        if any(stand.holds_the_plan for stand in self.stands):
            return None
        running = [stand for stand in self.stands if stand.state is ItemState.RUNNING]
        return next(iter([*running, *(stand for stand in self.stands if stand.can_start)]), None)

    @property
    def outcome(self) -> Literal["completed", "paused", "failed"]:
        """Completed when all succeeded, failed when nothing can go on any more, else paused.

        Somebody is needed.
        """
        states = {stand.state for stand in self.stands}
        if states == {ItemState.SUCCEEDED}:
            return "completed"
        return "failed" if states <= _DEAD | {ItemState.SUCCEEDED} else "paused"

    def of(self, item_id: str) -> Stand:
        """Return how one item stands."""
        return next(stand for stand in self.stands if stand.item.id == item_id)


def progress_of(plan: Plan, known: Mapping[str, Known], *, is_held: bool = False) -> Progress:
    """Say how a plan stands, given what the store knows of it."""
    stands: dict[str, Stand] = {}
    for item in in_order(plan):
        stands[item.id] = _stand(item, known.get(item.id), stands)
    in_file = tuple(stands[item.id] for item in plan.items)
    return Progress(plan=plan, stands=in_file, is_held=is_held)


def _stand(item: Item, known: Known | None, stands: Mapping[str, Stand]) -> Stand:
    needs = [stands[need] for need in item.needs]
    lacks = tuple(need.item.id for need in needs if need.state is not ItemState.SUCCEEDED)
    if known and not _must_start_over(known):
        state = ItemState(known.task.state) if known.task else ItemState.SUCCEEDED
        return Stand(
            item=item,
            state=state,
            task=known.task,
            is_changed=known.is_changed,
            in_review=known.in_review,
            unmade=known.unmade,
            lacks=lacks,
        )
    is_dead = any(need.state in _DEAD for need in needs)
    state = ItemState.BLOCKED if is_dead else ItemState.PENDING if lacks else ItemState.READY
    return Stand(
        item=item,
        state=state,
        task=known.task if known else None,
        is_changed=known is not None,
        lacks=lacks,
    )


def _must_start_over(known: Known) -> bool:
    """Return whether a person changed the entry after its task failed or was canceled."""
    return (
        known.is_changed
        and known.task is not None
        and known.task.state in {TaskState.FAILED, TaskState.CANCELED}
    )


def in_order(plan: Plan) -> list[Item]:
    """Return the items so that each comes after all that it needs."""
    ordered: list[Item] = []
    placed: set[str] = set()
    while len(ordered) < len(plan.items):
        free = [
            item for item in plan.items if item.id not in placed and placed.issuperset(item.needs)
        ]
        ordered += free
        placed.update(item.id for item in free)
    return ordered

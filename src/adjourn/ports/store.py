"""What keeps tasks, and how it is read and changed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from adjourn.core.ask import Ask, AskKind
from adjourn.core.call import Call
from adjourn.core.errors import UnreadableRow
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Milliseconds, Run, Task
from adjourn.core.trail.events import Event, Happened, Sealed

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: only who delivers needs it
    from adjourn.core.outbox import Outbox


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a run asked for something by key: an ask, or a task of its own."""

    run_id: str
    key: str
    thing: str
    left_open: bool = False


class View(Protocol):
    """What can be read, all of one moment.

    Lists over several tasks leave out what cannot be read, and it stands in `unreadable`. What is
    read of one task raises UnreadableRow.
    """

    @property
    def unreadable(self) -> dict[str, UnreadableRow]:
        """What lists of this store's views left out so far, by its sentence."""
        ...

    def task(self, task_id: str) -> Task:
        """Return the task, or raise NotFound."""
        ...

    def read_ahead(self, task_id: str) -> None:
        """Announce that a task's calls, asks and last run are needed: they can be read at once."""
        ...

    def tasks_like(self, prefix: str) -> list[str]:
        """Return at most three tasks with this prefix in their id or a checkpoint's id."""
        ...

    def tasks(
        self, *, states: Sequence[TaskState] = (), limit: int, before: str | None = None
    ) -> list[Task]:
        """Return tasks, newest first: of these states or of all, older than the given one."""
        ...

    def running(self) -> list[Task]:
        """Return every task that is running."""
        ...

    def unwanted(self) -> set[str]:
        """Return the ids of the tasks that are running and that somebody wants to stop."""
        ...

    def queued(self, *, pool: str, limit: int) -> list[Task]:
        """Return the tasks of a pool that can be started, oldest first."""
        ...

    def abandoned(self) -> list[Run]:
        """Return the runs whose supervisor let its lease run out.

        None where supervisors hold locks instead.
        """
        ...

    def run(self, task_id: str, number: int) -> Run:
        """Return one run, or raise NotFound."""
        ...

    def current_runs(self) -> list[Run]:
        """Return the last run of every task that is running."""
        ...

    def runs(self, task_id: str) -> list[Run]:
        """Return all runs of a task, oldest first."""
        ...

    def run_of_checkpoint(self, prefix: str) -> Run | None:
        """Return the run that left the one checkpoint whose id begins so."""
        ...

    def call(self, task_id: str, number: int) -> Call:
        """Return one call, or raise NotFound."""
        ...

    def calls(self, task_id: str) -> list[Call]:
        """Return all calls of a task, oldest first."""
        ...

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        """Return the calls of a task in a state that is not final, oldest first."""
        ...

    def call_labelled(self, task_id: str, label: str) -> Call | None:
        """Return the call of a task that an agent calls so, if there is one."""
        ...

    def ask(self, ask_id: str) -> Ask:
        """Return the ask, or raise NotFound."""
        ...

    def asks_like(self, prefix: str) -> list[str]:
        """Return the ids of at most three asks that begin with the prefix."""
        ...

    def asks(self, task_id: str) -> list[Ask]:
        """Return all asks of a task, oldest first."""
        ...

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        """Return the asks that one run opened, oldest first; a later run opens later ones."""
        ...

    def open_asks_of(self, task_id: str) -> list[Ask]:
        """Return the open asks of a task, oldest first."""
        ...

    def ask_in_slot(self, slot: str) -> Ask | None:
        """Return the newest ask in that slot that was not withdrawn."""
        ...

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        """Return the n-th ask of a task, if there is one."""
        ...

    def open_asks(
        self,
        *,
        limit: int,
        after: str | None = None,
        before: str | None = None,
        awake_at: Milliseconds | None = None,
    ) -> list[Ask]:
        """Return open asks of all tasks, oldest first, those after the given one.

        Or those right before another one, as far as the limit goes. Without those snoozed at a
        moment.
        """
        ...

    def open_ask_ids(self, *, awake_at: Milliseconds | None = None) -> list[tuple[str, AskKind]]:
        """Return the ids and kinds of all open asks, in the order of `open_asks`.

        Without those snoozed at a moment.
        """
        ...

    def snoozed_asks(self, *, now: Milliseconds, limit: int) -> list[Ask]:
        """Return the open asks that are snoozed, those first that come back first."""
        ...

    def count_snoozed_asks(self, *, now: Milliseconds) -> int:
        """Return how many open asks are snoozed."""
        ...

    def expired_asks(self, *, now: Milliseconds) -> list[Ask]:
        """Return the open asks whose time is over, task by task."""
        ...

    def asks_to_remind(self, *, now: Milliseconds) -> list[Ask]:
        """Return the open asks of which somebody is to be reminded by now, task by task."""
        ...

    def count_open_asks(self) -> int:
        """Return how many asks are open."""
        ...

    def count_turns(self, run_id: str, key: str) -> int:
        """Return how often a run has asked for that key."""
        ...

    def turns_left_open(self, run_id: str) -> list[Turn]:
        """Return what a run asked for and did not get, in order."""
        ...

    def task_in_slot(self, slot: str) -> Task | None:
        """Return the task that was started for that slot of its parent, if there is one."""
        ...

    def document(self, task_id: str, name: str) -> bytes | None:
        """Return what a task keeps under that name, if anything."""
        ...

    def messages(self, task_id: str, *, after: int = 0) -> list[bytes]:
        """Return a task's transcript, oldest first, or so much of it after the n-th message."""
        ...

    def count_messages(self, task_id: str) -> int:
        """Return how many messages a task's transcript has."""
        ...

    def shared_document(self, name: str) -> bytes | None:
        """Return what the store keeps under that name for no task in particular, if anything."""
        ...

    def events(self, task_id: str) -> list[Event]:
        """Return what happened to a task, oldest first."""
        ...

    def requester(self, task_id: str) -> str:
        """Return who asked for a task, as its first event records it."""
        ...

    def beginning(self, task_id: str) -> Event | None:
        """Return the first event of a task; None if it is missing or unreadable."""
        ...

    def newest_events(self, task_id: str, *, limit: int) -> list[Event]:
        """Return the last events of a task, newest first, this transaction's included; -1 is all.

        What cannot be read is left out: nothing is let through because of it.
        """
        ...

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        """Return what happened to a task last, newest first."""
        ...

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        """Return the audit trail of the whole store, or so much of it after a place, oldest first.

        What cannot be read is there, too, as an event that was forgotten and has no link.
        """
        ...

    def chain_head(self, task_id: str) -> bytes:
        """Return the link of the newest event of a task, as kept with the task."""
        ...

    def trail_head(self) -> tuple[int, bytes]:
        """Return the place and the seal of the newest event.

        0 and GENESIS where nothing has happened.
        """
        ...

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        """Return what happened after a place of the trail, oldest first.

        What is committed later has a later place.
        """
        ...

    def place_before(self, moment: Milliseconds) -> int:
        """Return the place after which everything happened at that moment or later."""
        ...

    def outbox(self, notifier: str) -> "Outbox | None":
        """Return how far a notifier is, if it was ever told anything."""
        ...


class Change(View, Protocol):
    """One transaction: all of it happens, or none. What it reads is what it changes."""

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        ...

    def save_task(self, old: Task, new: Task) -> None:
        """Put `new` in the place of `old`, or raise Outdated if the task is not `old` any more."""
        ...

    def hold(self, run: Run) -> None:
        """Give the run's supervisor its task, or raise Outdated if another has it."""
        ...

    def fence(self, run: Run) -> None:
        """Raise Outdated if the run's supervisor does not have its task any more."""
        ...

    def take_over(self, run: Run, *, only_if_over: bool) -> None:
        """Take the task from the run's supervisor for good.

        Or raise Outdated if its lease should be over and is not.
        """
        ...

    def add_run(self, run: Run) -> None:
        """Keep a new run."""
        ...

    def save_run(self, old: Run, new: Run) -> None:
        """Put `new` in the place of `old`, or raise Outdated."""
        ...

    def add_call(self, call: Call) -> None:
        """Keep a new call."""
        ...

    def save_call(self, old: Call, new: Call) -> None:
        """Replace `old` by `new`, or raise Outdated if state, digest or claim differ from `old`."""
        ...

    def add_ask(self, ask: Ask) -> None:
        """Keep a new ask."""
        ...

    def hold_asks(self, ask_ids: Sequence[str]) -> None:
        """Announce which asks will be changed, so that two writers never wait in a circle."""
        ...

    def save_ask(self, old: Ask, new: Ask) -> None:
        """Put `new` in the place of `old`, or raise Outdated if somebody settled it."""
        ...

    def add_turn(self, turn: Turn) -> None:
        """Remember that a run asked for something."""
        ...

    def close_turn(self, run_id: str, thing: str) -> None:
        """Remember that a run got what it had asked for and not got at first."""
        ...

    def keep_document(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task in the place of what was there; None keeps nothing."""
        ...

    def add_message(self, task_id: str, number: int, body: bytes) -> None:
        """Keep the n-th message of a transcript; none is ever changed."""
        ...

    def flush(self) -> None:
        """Write what was kept back so far.

        A row that is changed again after this is written twice.
        """
        ...

    def keep_shared_document(self, name: str, body: bytes) -> None:
        """Keep a document that belongs to no task, in the place of what was there."""
        ...

    def append(self, event: Event) -> None:
        """Add to the audit trail."""
        ...

    def save_outbox(self, notifier: str, outbox: "Outbox") -> None:
        """Keep how far a notifier is, in the place of what was kept before."""
        ...

    def clear_damaged(self, task: Task) -> None:
        """Put a task that can be read in the place of one that cannot; its events stay.

        Its runs, calls, asks and documents are dropped: one of them may be what is damaged. A store
        that cannot do that raises Conflict.
        """
        ...

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task; the digests of its events stay, so that the chain still closes."""
        ...


class Listener(Protocol):
    """Wakes those who wait for a change.

    What changed is read from the store: a wake-up may be spurious, or lost.
    """

    def fileno(self) -> int:
        """Return what to poll."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why it gets no notices, if so; then the caller has to check the store itself."""
        ...

    def drain(self) -> None:
        """Forget the wake-ups that have come so far.

        A broken connection is opened again here; a caller who reads after this misses nothing.
        """
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Store(Protocol):
    """Keeps tasks. It knows nothing of the rules that move them."""

    @property
    def unreadable(self) -> dict[str, UnreadableRow]:
        """What was left out so far because it cannot be read, by its sentence."""
        ...

    def read(self) -> AbstractContextManager[View]:
        """Open a view of one moment."""
        ...

    def change(self) -> AbstractContextManager[Change]:
        """Open a transaction; it is on disk after the block, and gone if the block raised."""
        ...

    def require_ours(self) -> None:
        """Refuse a store that can be looked at and not changed.

        A copy, or one that lacks what was acknowledged here.
        """
        ...

    def next_queued(
        self, pool: str, *, supervisor: str, fits: Callable[[Task], bool]
    ) -> Task | None:
        """Return a task of a pool that can be started and fits: one just queued, or the oldest.

        Machines that share a pool are offered different ones. What was just queued is offered to
        all of them: the first to claim it has it.
        """
        ...

    def listen(self) -> Listener:
        """Return an ear that hears every change from now on."""
        ...

    def run_key(self, task_id: str) -> str | None:
        """Return the key by which processes of a task write for it with their own login, if any."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...

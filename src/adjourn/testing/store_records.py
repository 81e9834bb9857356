"""What is kept comes back, all of it or none, and of two who change it one wins."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from msgspec.structs import replace

from adjourn.core.ask import Ask
from adjourn.core.call import Call, Command, command_body, digest_of, slot_of
from adjourn.core.errors import NotFound, Outdated
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Run, RunState, Task
from adjourn.core.trail.events import first_broken
from adjourn.ports.store import Change, Store, Turn, View
from adjourn.testing.open_stores import Open, OpensStores
from adjourn.testing.store_samples import (
    FULL_ASK,
    FULL_CALL,
    FULL_QUESTION,
    FULL_RUN,
    FULL_TASK,
    FULL_UNCERTAIN,
    Disaster,
    everything,
    given_up,
    keep,
)
from adjourn.testing.values import NOON, a_call, a_run, a_task, an_ask, an_event, settled


def _changed_fields(run: Run) -> dict[str, Any]:
    """Return the fields that change in the life of a run."""
    names = "state version updated_at shim exit_code signal message checkpoint_id paused_at"
    return {name: getattr(run, name) for name in f"{names} pause_reason superseded_by".split()}


Look = Callable[[View], Any]


LOOKS_FOR_NOTHING: dict[str, Look] = {
    "task": lambda view: view.task("nobody"),
    "run": lambda view: view.run("task-a", 9),
    "run of nobody": lambda view: view.run("nobody", 1),
    "call": lambda view: view.call("task-a", 9),
    "call of nobody": lambda view: view.call("nobody", 1),
    "ask": lambda view: view.ask("nothing"),
    "runs of nobody": lambda view: view.runs("nobody"),
    "calls of nobody": lambda view: view.calls("nobody"),
    "approved calls of nobody": lambda view: view.calls_in("nobody", CallState.APPROVED),
    "asks of nobody": lambda view: view.asks("nobody"),
    "asks of nobody's run": lambda view: view.asks_of_run("nobody", 1),
    "open asks of nobody": lambda view: view.open_asks_of("nobody"),
    "turns of nobody": lambda view: view.count_turns("nobody.1", "key"),
    "open turns of nobody": lambda view: view.turns_left_open("nobody.1"),
    "events of nobody": lambda view: view.events("nobody"),
    "tasks before nobody": lambda view: view.tasks(limit=9, before="nobody"),
    "asks after nothing": lambda view: view.open_asks(limit=9, after="nothing"),
    "asks before nothing": lambda view: view.open_asks(limit=9, before="nothing"),
}


def _change_all_there_is(tx: Change) -> None:
    tx.save_task(a_task(), a_task(version=2, state=TaskState.RUNNING))
    tx.save_run(a_run(), a_run(version=2, message="new"))
    tx.save_call(a_call(), a_call(version=2, state=CallState.WITHDRAWN))
    tx.save_ask(an_ask(), settled(an_ask(), AskState.WITHDRAWN))
    tx.add_task(a_task("task-c"))
    tx.add_run(a_run("task-c"))
    tx.add_call(a_call("task-c"))
    tx.add_ask(an_ask("ask-c", "task-c"))
    tx.add_turn(Turn(run_id="task-a.1", key="ask:x", thing="ask-a", left_open=True))
    tx.append(an_event())
    tx.append(an_event("task-c"))
    tx.forget_task("task-b")


def _conflict_half_way(store: Store) -> None:
    with store.change() as tx:
        tx.append(an_event())
        tx.save_ask(an_ask(), settled(an_ask(), AskState.ANSWERED, reply="eu"))
        tx.save_task(a_task(version=9), a_task(version=10))


def _answer_and_add(store: Store) -> None:
    with store.change() as tx:
        tx.save_ask(an_ask(), settled(an_ask(), AskState.ANSWERED))
        tx.save_task(a_task(), a_task(version=2))
        tx.add_task(a_task("task-b"))


Save = Callable[[Change], None]


STALE: dict[str, Save] = {
    "task, other version": lambda tx: tx.save_task(a_task(version=2), a_task(version=3)),
    "task, other state": lambda tx: tx.save_task(a_task(state=TaskState.PAUSED), a_task(version=2)),
    "run, other version": lambda tx: tx.save_run(a_run(version=2), a_run(version=3)),
    "run, other state": lambda tx: tx.save_run(a_run(state=RunState.PAUSED), a_run(version=2)),
    "run that is not there": lambda tx: tx.save_run(a_run(number=9), a_run(number=9, version=2)),
    "call, other version": lambda tx: tx.save_call(a_call(version=2), a_call(version=3)),
    "call, other state": lambda tx: tx.save_call(
        a_call(state=CallState.PENDING), a_call(version=2)
    ),
    "call, other digest": lambda tx: tx.save_call(a_call(digest="00" * 32), a_call(version=2)),
    "call, other claim": lambda tx: tx.save_call(a_call(claimed_by="other"), a_call(version=2)),
    "call that is not there": lambda tx: tx.save_call(
        a_call(number=9), a_call(number=9, version=2)
    ),
    "ask, settled meanwhile": lambda tx: tx.save_ask(
        settled(an_ask(), AskState.ANSWERED), settled(an_ask(), AskState.ANSWERED)
    ),
    "ask that is not there": lambda tx: tx.save_ask(
        an_ask("ask-z", number=9), settled(an_ask("ask-z", number=9), AskState.ANSWERED)
    ),
}


CROWD = 8


Race = Callable[[Store, int], None]


def _race_for_the_task(store: Store, runner: int) -> None:
    with store.change() as tx:
        tx.save_task(a_task(), a_task(state=TaskState.RUNNING, message=str(runner), version=2))


def _race_for_the_call(store: Store, runner: int) -> None:
    with store.change() as tx:
        tx.save_call(a_call(), a_call(state=CallState.CLAIMED, claimed_by=str(runner), version=2))


def _race_for_the_ask(store: Store, runner: int) -> None:
    with store.change() as tx:
        tx.save_ask(an_ask(), settled(an_ask(), AskState.ANSWERED, reply=str(runner)))


def _try(open_store: Open, race: Race, name: int, together: Barrier) -> str | None:
    store = open_store()
    together.wait()
    try:
        race(store, name)
    except Outdated:
        return None
    return str(name)


class StoreRecords(OpensStores):
    """What is kept comes back, all of it or none, and of two who change it one wins."""

    # --- what is kept comes back ------------------------------------------------------------------

    @pytest.mark.parametrize("task", [FULL_TASK, a_task()], ids=["full", "plain"])
    def test_a_task_comes_back_exactly(self, store: Store, task: Task) -> None:
        """A-R4, A-R56."""
        keep(store, task)
        with store.read() as view:
            assert view.task("task-a") == task
            assert view.tasks(limit=9) == [task]

    @pytest.mark.parametrize("run", [FULL_RUN, a_run(number=3)], ids=["full", "plain"])
    def test_a_run_comes_back_exactly(self, store: Store, run: Run) -> None:
        """D-R8, D-R43: a paused run is kept with all that it takes to resume it."""
        keep(store, a_task(), run)
        with store.read() as view:
            assert view.run("task-a", 3) == run
            assert view.runs("task-a") == [run]

    @pytest.mark.parametrize("call", [FULL_CALL, a_call(number=4)], ids=["full", "plain"])
    def test_a_call_comes_back_exactly(self, store: Store, call: Call) -> None:
        keep(store, a_task(), call)
        with store.read() as view:
            assert view.call("task-a", 4) == call
            assert view.calls("task-a") == [call]

    @pytest.mark.parametrize(
        "ask",
        [FULL_ASK, FULL_QUESTION, FULL_UNCERTAIN, an_ask("ask-a", number=5)],
        ids=["full", "question", "uncertain", "plain"],
    )
    def test_an_ask_comes_back_exactly(self, store: Store, ask: Ask) -> None:
        """C-R3."""
        keep(store, a_task(), ask)
        with store.read() as view:
            assert view.ask("ask-a") == ask
            assert view.asks("task-a") == [ask]
            assert view.ask_numbered("task-a", 5) == ask

    @pytest.mark.parametrize("state", TaskState)
    def test_every_state_of_a_task_can_be_kept(self, store: Store, state: TaskState) -> None:
        """C-R2."""
        keep(store, a_task(state=state))
        with store.read() as view:
            assert view.task("task-a").state is state

    @pytest.mark.parametrize("state", CallState)
    def test_every_state_of_a_call_can_be_kept(self, store: Store, state: CallState) -> None:
        keep(store, a_task(), a_call(state=state, claimed_by="supervisor"))
        with store.read() as view:
            assert view.call("task-a", 1).state is state

    @pytest.mark.parametrize("state", AskState)
    def test_every_state_of_an_ask_can_be_kept(self, store: Store, state: AskState) -> None:
        """C-R3."""
        keep(store, a_task(), an_ask() if state is AskState.PENDING else settled(an_ask(), state))
        with store.read() as view:
            assert view.ask("ask-a").state is state

    @pytest.mark.parametrize("state", RunState)
    def test_every_state_of_a_run_can_be_kept(self, store: Store, state: RunState) -> None:
        """D-R34."""
        keep(store, a_task(), a_run(state=state))
        with store.read() as view:
            assert view.run("task-a", 1).state is state

    def test_saving_puts_the_new_value_in_the_place_of_the_old(self, store: Store) -> None:
        keep(store, a_task(), a_run(), a_call(), an_ask())
        task = replace(FULL_TASK, version=2, created_at=NOON, slot=None)
        run = replace(a_run(), **_changed_fields(FULL_RUN))
        body = command_body(Command(argv=("other",), cwd="/", env={"AUTO_APPROVAL": "yes"}))
        call = replace(
            a_call(),
            state=CallState.CLAIMED,
            claimed_by="s",
            approved_by="me",
            ask=1,
            body=body,
            digest=digest_of(body),
            version=2,
        )
        ask = settled(an_ask(), AskState.ANSWERED, reply="eu")
        with store.change() as tx:
            tx.save_task(a_task(), task)
            tx.save_run(a_run(), run)
            tx.save_call(a_call(), call)
            tx.save_ask(an_ask(), ask)
        with store.read() as view:
            assert (view.task("task-a"), view.run("task-a", 1)) == (task, run)
            assert (view.call("task-a", 1), view.ask("ask-a")) == (call, ask)

    # --- what is not there ------------------------------------------------------------------------

    @pytest.mark.parametrize("look", LOOKS_FOR_NOTHING.values(), ids=LOOKS_FOR_NOTHING.keys())
    def test_what_is_not_there_is_not_found(self, store: Store, look: Look) -> None:
        keep(store, a_task())
        with store.read() as view, pytest.raises(NotFound) as refusal:
            look(view)
        assert refusal.value.way_out

    def test_what_may_be_missing_is_none(self, store: Store) -> None:
        keep(store, a_task())
        slot = slot_of("session", "key", 1)
        with store.read() as view:
            assert view.ask_in_slot(slot) is None
            assert view.task_in_slot(slot) is None
            assert view.ask_numbered("task-a", 1) is None
            assert view.run_of_checkpoint("none") is None

    def test_an_empty_store_is_empty(self, store: Store) -> None:
        assert everything(store) == ([], [], 0, [], [])
        with store.read() as view:
            assert view.running() == []
            assert view.tasks_like("") == []
            assert view.asks_like("") == []

    # --- all of it, or none -----------------------------------------------------------------------

    @pytest.mark.parametrize(
        "disaster", [ValueError, Disaster, KeyboardInterrupt, SystemExit, Outdated]
    )
    def test_a_change_that_raised_leaves_no_trace(
        self, store: Store, disaster: type[BaseException]
    ) -> None:
        keep(store, a_task(), a_run(), a_call(), an_ask(), a_task("task-b", state=TaskState.FAILED))
        with store.change() as tx:
            tx.append(an_event())
            tx.append(an_event("task-b"))
        before = everything(store, "task-a", "task-b")
        with given_up(store, because=disaster) as tx:
            _change_all_there_is(tx)
        assert everything(store, "task-a", "task-b") == before
        with store.read() as view:
            assert view.count_turns("task-a.1", "ask:x") == 0
            assert view.turns_left_open("task-a.1") == []

    def test_a_change_that_found_a_conflict_half_way_leaves_no_trace(self, store: Store) -> None:
        keep(store, a_task(), an_ask())
        before = everything(store, "task-a")
        with pytest.raises(Outdated):
            _conflict_half_way(store)
        assert everything(store, "task-a") == before

    def test_the_trail_goes_on_where_it_was_after_a_change_that_raised(self, store: Store) -> None:
        keep(store, a_task())
        for number in range(6):
            try:
                with store.change() as tx:
                    tx.append(an_event(facts={"number": number}))
                    if number % 2:
                        raise ValueError
            except ValueError:
                continue
        with store.read() as view:
            assert [event.facts["number"] for event in view.events("task-a")] == [0, 2, 4]
            assert first_broken(view.trail()) is None

    def test_a_change_reads_what_it_has_written_so_far(self, store: Store) -> None:
        with store.change() as tx:
            tx.add_task(a_task())
            tx.add_run(a_run(checkpoint_id="checkpoint"))
            tx.add_ask(an_ask())
            tx.add_call(a_call())
            tx.append(an_event())
            tx.add_turn(Turn(run_id="task-a.1", key="ask:x", thing="ask-a", left_open=True))
            assert tx.task("task-a") == a_task()
            assert tx.tasks_like("check") == ["task-a"]
            assert tx.open_asks(limit=9) == [an_ask()]
            assert tx.calls_in("task-a", CallState.APPROVED) == [a_call()]
            assert tx.events("task-a") == [an_event()]
            assert first_broken(tx.trail()) is None
            assert tx.count_turns("task-a.1", "ask:x") == 1
            tx.save_ask(an_ask(), settled(an_ask(), AskState.WITHDRAWN))
            assert tx.open_asks(limit=9) == []

    def test_what_was_changed_is_there_for_everyone(self, open_store: Open) -> None:
        """A-R4: the next process that opens the store needs nothing of the one that wrote."""
        writer = open_store()
        keep(writer, FULL_TASK, FULL_RUN, FULL_CALL, FULL_ASK)
        with writer.change() as tx:
            tx.append(an_event())
        assert everything(open_store(), "task-a") == everything(writer, "task-a")

    def test_a_view_is_of_one_moment(self, open_store: Open) -> None:
        reader, writer = open_store(), open_store()
        keep(writer, a_task(), an_ask())
        with reader.read() as view:
            assert view.task("task-a") == a_task()
            with ThreadPoolExecutor() as pool:
                pool.submit(_answer_and_add, writer).result()
            assert view.task("task-a") == a_task()
            assert view.open_asks(limit=9) == [an_ask()]
            assert view.tasks(limit=9) == [a_task()]
        with reader.read() as view:
            assert view.open_asks(limit=9) == []
            assert view.tasks_like("task") == ["task-a", "task-b"]

    def test_a_view_may_end_in_an_error_without_harm(self, store: Store) -> None:
        keep(store, a_task())
        with pytest.raises(NotFound), store.read() as view:
            view.task("nobody")
        keep(store, a_task("task-b"))
        assert len(everything(store)[0]) == 2

    # --- compare and swap -------------------------------------------------------------------------

    @pytest.mark.parametrize("save", STALE.values(), ids=STALE.keys())
    def test_saving_over_something_else_is_refused(self, store: Store, save: Save) -> None:
        """C-R14: the decision is an UPDATE with its guard in the WHERE."""
        keep(store, a_task(), a_run(), a_call(), an_ask())
        before = everything(store, "task-a")
        with pytest.raises(Outdated), store.change() as tx:
            save(tx)
        assert everything(store, "task-a") == before

    def test_a_call_of_somebody_else_is_not_taken(self, store: Store) -> None:
        claimed = a_call(state=CallState.CLAIMED, claimed_by="one")
        keep(store, a_task(), claimed)
        with pytest.raises(Outdated), store.change() as tx:
            tx.save_call(replace(claimed, claimed_by=None), replace(claimed, claimed_by="two"))
        with pytest.raises(Outdated), store.change() as tx:
            tx.save_call(
                replace(claimed, claimed_by="two"), replace(claimed, state=CallState.EXECUTING)
            )

    @pytest.mark.parametrize(
        "race",
        [_race_for_the_task, _race_for_the_call, _race_for_the_ask],
        ids=["task", "call", "ask"],
    )
    def test_of_many_who_save_at_once_one_wins(self, open_store: Open, race: Race) -> None:
        """C-R14."""
        keep(open_store(), a_task(), a_call(), an_ask())
        together = Barrier(CROWD)

        def race_as(name: int) -> str | None:
            return _try(open_store, race, name, together)

        with ThreadPoolExecutor(CROWD) as pool:
            winners = [name for name in pool.map(race_as, range(CROWD)) if name]
        with open_store().read() as view:
            held = (
                view.task("task-a").message,
                view.call("task-a", 1).claimed_by,
                view.ask("ask-a").reply,
            )
        assert [word for word in held if word] == winners
        assert len(winners) == 1

    def test_nothing_is_lost_when_many_add_at_once(self, open_store: Open) -> None:
        keep(open_store(), a_task())
        together = Barrier(CROWD)

        def add_some(name: int) -> None:
            store = open_store()
            together.wait()
            for number in range(5):
                with store.change() as tx:
                    tx.add_task(a_task(f"task-{name}-{number}"))
                    tx.append(an_event(f"task-{name}-{number}"))
                    tx.append(an_event(facts={"name": name}))

        with ThreadPoolExecutor(CROWD) as pool:
            list(pool.map(add_some, range(CROWD)))
        with open_store().read() as view:
            assert len(view.tasks(limit=1000)) == 1 + CROWD * 5
            assert len(view.events("task-a")) == CROWD * 5
            assert first_broken(view.trail()) is None

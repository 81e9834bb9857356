"""What is kept is found by its names, in order, page by page."""

import os
from itertools import product

import pytest
from msgspec.structs import replace

from adjourn.core.ask import AskKind
from adjourn.core.call import slot_of
from adjourn.core.errors import NotFound
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Wish
from adjourn.ports.store import Store
from adjourn.testing.open_stores import OpensStores
from adjourn.testing.store_samples import keep
from adjourn.testing.values import (
    NOON,
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_ask,
    settled,
)

PREFIXES: dict[str, list[str]] = {
    "abc1": ["abc1"],
    "abd": ["abd1"],
    "ck1": ["abc1"],
    "ck1x": ["abc1"],
    "ck2": ["abc2"],
    "ck": ["abc1", "abc2"],
    "abc": ["abc1", "abc2", "abd1"],
    "abc1x": [],
    "ABC1": [],
    "%": [],
    "_": [],
    "a%": [],
    "b%": ["b%_1"],
    "b_": [],
    "*": ["*?[a]"],
    "?": [],
    "[a]": [],
    "'; DROP TABLE task; --": [],
    "../../x": [],
    "--help": [],
    "-": [],
    "\0": [],
    "\U0010ffff": [],
    "abc1\0": [],
}


HOSTILE_NAMES = (
    *("\0", "\x1b]52;c;AAAA\x07", "\x9b31m", "abc\u202e1", "\u200babc1", "abc1\u00ad"),
    *("\ufffe", "\U0010ffff", "a" * 100_000, "abc'--", "$1", "?1", "\\", "%", "_", "NULL", "0"),
)


def finds_nothing(named: Store, word: str) -> None:
    """Check that a word names no task, no ask and no checkpoint."""
    with named.read() as view:
        assert view.tasks_like(word) == []
        assert view.asks_like(word) == []
        assert view.run_of_checkpoint(word) is None
        with pytest.raises(NotFound):
            view.task(word)
        with pytest.raises(NotFound):
            view.ask(word)


INBOX = [
    ("task-b", 1, 5),
    ("task-a", 1, 5),
    ("task-c", 1, 4),
    ("task-a", 2, 9),
    ("task-c", 2, 5),
    ("task-b", 2, 1),
]


UNFINISHED = [
    CallState.PENDING,
    CallState.APPROVED,
    CallState.CLAIMED,
    CallState.EXECUTING,
    CallState.UNCERTAIN,
]


class StoreFinding(OpensStores):
    """What is kept is found by its names, in order, page by page."""

    # --- by what things are found -----------------------------------------------------------------

    @pytest.fixture
    def named(self, store: Store) -> Store:
        """Return a store with ids that begin alike."""
        keep(store, *(a_task(name) for name in ("abc1", "abc2", "abd1", "b%_1", "*?[a]")))
        keep(
            store,
            a_run("abc1", 1, checkpoint_id="ck1x"),
            a_run("abc1", 2, checkpoint_id="ck1y"),
            a_run("abc2", 1, checkpoint_id="ck2"),
        )
        keep(
            store,
            a_run("abd1", 1, checkpoint_id="abc9"),
            an_ask("ask1", "abc1"),
            an_ask("ask2", "abc1", 2),
            an_ask("b", "abc2"),
        )
        return store

    @pytest.mark.parametrize(("prefix", "found"), PREFIXES.items(), ids=map(ascii, PREFIXES))
    def test_a_prefix_finds_tasks_by_their_id_or_a_checkpoint_of_theirs(
        self, named: Store, prefix: str, found: list[str]
    ) -> None:
        """A-R5: resume works with the checkpoint id alone."""
        with named.read() as view:
            assert sorted(view.tasks_like(prefix)) == found

    def test_a_hostile_name_finds_nothing_and_breaks_nothing(self, named: Store) -> None:
        """Ids come from argv, and argv is bytes."""
        for word in (*HOSTILE_NAMES, os.fsdecode(b"\xff"), os.fsdecode(b"abc\xff"), "\ud800"):
            finds_nothing(named, word)

    @pytest.mark.parametrize("prefix", ["", "a", "abc"])
    def test_at_most_three_are_named(self, named: Store, prefix: str) -> None:
        with named.read() as view:
            assert len(view.tasks_like(prefix)) == 3

    @pytest.mark.parametrize(
        ("prefix", "found"),
        {"ask": ["ask1", "ask2"], "ask1": ["ask1"], "b": ["b"], "%": [], "abc": []}.items(),
        ids=range(5),
    )
    def test_a_prefix_finds_asks(self, named: Store, prefix: str, found: list[str]) -> None:
        with named.read() as view:
            assert view.asks_like(prefix) == found

    @pytest.mark.parametrize(
        ("prefix", "run"),
        {
            "ck1x": "abc1.1",
            "ck1y": "abc1.2",
            "ck1": None,
            "ck2": "abc2.1",
            "ck": None,
            "x": None,
        }.items(),
        ids=range(6),
    )
    def test_a_checkpoint_leads_to_its_run(
        self, named: Store, prefix: str, run: str | None
    ) -> None:
        with named.read() as view:
            found = view.run_of_checkpoint(prefix)
            assert (found.id if found else None) == run

    def test_a_slot_leads_to_its_task(self, store: Store) -> None:
        slot = slot_of("session", "key", 1)
        keep(
            store,
            a_task("task-a", slot=slot_of("session", "key", 2)),
            a_task("task-b", slot=slot),
            a_task("task-c"),
        )
        with store.read() as view:
            assert view.task_in_slot(slot) == a_task("task-b", slot=slot)

    def test_a_slot_leads_to_its_newest_ask_that_was_not_withdrawn(self, store: Store) -> None:
        slot = slot_of("session", "key", 1)
        first = settled(an_ask("ask-1", slot=slot), AskState.ANSWERED)
        second = settled(an_ask("ask-2", number=2, slot=slot), AskState.WITHDRAWN)
        keep(store, a_task(), first, second, an_ask("ask-3", number=3))
        with store.read() as view:
            assert view.ask_in_slot(slot) == first
        third = an_ask("ask-4", number=4, slot=slot)
        keep(store, third)
        with store.read() as view:
            assert view.ask_in_slot(slot) == third

    # --- order and pages --------------------------------------------------------------------------

    def test_tasks_are_told_newest_first(self, store: Store) -> None:
        for number in range(5):
            keep(store, a_task(f"task-{number}", created_at=NOON - number, updated_at=NOON))
        with store.read() as view:
            assert [task.id for task in view.tasks(limit=9)] == [
                "task-4",
                "task-3",
                "task-2",
                "task-1",
                "task-0",
            ]
            assert [task.id for task in view.tasks(limit=2)] == ["task-4", "task-3"]
            assert [task.id for task in view.tasks(limit=2, before="task-3")] == [
                "task-2",
                "task-1",
            ]
            assert view.tasks(limit=9, before="task-0") == []

    def test_tasks_are_told_by_state(self, store: Store) -> None:
        states = [TaskState.QUEUED, TaskState.RUNNING, TaskState.FAILED] * 3
        for number, state in enumerate(states):
            keep(store, a_task(f"task-{number}", state=state))
        with store.read() as view:
            assert [task.id for task in view.tasks(states=[TaskState.RUNNING], limit=2)] == [
                "task-7",
                "task-4",
            ]
            some = view.tasks(states=[TaskState.FAILED, TaskState.QUEUED], limit=3, before="task-6")
            assert [task.id for task in some] == ["task-5", "task-3", "task-2"]
            assert view.tasks(states=[TaskState.PAUSED], limit=9) == []
            assert [task.id for task in view.running()] == ["task-1", "task-4", "task-7"]

    def test_the_tasks_that_run_and_should_stop_are_told(self, store: Store) -> None:
        """A wish for what does not run any more is nobody's business."""
        keep(store, a_task("task-0", state=TaskState.RUNNING))
        keep(store, a_task("task-1", state=TaskState.RUNNING, wish=Wish.PAUSE))
        keep(store, a_task("task-2", state=TaskState.RUNNING, wish=Wish.CANCEL))
        keep(store, a_task("task-3", state=TaskState.WAITING, wish=Wish.PAUSE))
        with store.read() as view:
            assert view.unwanted() == {"task-1", "task-2"}

    def test_what_can_be_started_is_told_oldest_first_and_by_pool(self, store: Store) -> None:
        """Only those who hold the workspace take its tasks."""
        here, there = a_spec(), a_spec(pool="there")
        for number, (spec, state) in enumerate(
            product((here, there), (TaskState.QUEUED, TaskState.RUNNING, TaskState.QUEUED))
        ):
            keep(store, a_task(f"task-{number}", spec=spec, state=state, created_at=NOON - number))
        with store.read() as view:
            assert [task.id for task in view.queued(pool=here.pool, limit=9)] == [
                "task-0",
                "task-2",
            ]
            assert [task.id for task in view.queued(pool="there", limit=1)] == ["task-3"]
            assert view.queued(pool="nowhere", limit=9) == []

    def test_asks_whose_time_is_over_are_found(self, store: Store) -> None:
        """C-R3."""
        keep(store, a_task(), a_task("task-b"))
        times = [("task-b", 1, 5), ("task-a", 1, 6), ("task-a", 2, 4), ("task-b", 2, 9)]
        asks = [
            an_ask(f"{name}.{number}", name, number, expires_at=NOON + at)
            for name, number, at in times
        ]
        over = settled(an_ask("settled", "task-a", 3, expires_at=NOON), AskState.ANSWERED)
        keep(store, *asks, over, an_ask("lasting", "task-a", 4))
        with store.read() as view:
            assert view.expired_asks(now=NOON + 3) == []
            assert [ask.id for ask in view.expired_asks(now=NOON + 6)] == [
                "task-a.1",
                "task-a.2",
                "task-b.1",
            ]

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_pages_of_tasks_hold_each_task_once(self, store: Store, size: int) -> None:
        keep(store, *(a_task(f"task-{number}") for number in range(7)))
        seen: list[str] = []
        with store.read() as view:
            while page := view.tasks(limit=size, before=seen[-1] if seen else None):
                seen += [task.id for task in page]
        assert seen == [f"task-{number}" for number in reversed(range(7))]

    @pytest.fixture
    def inbox(self, store: Store) -> Store:
        """Return a store whose asks came while the clock jumped and stood still."""
        keep(store, a_task("task-a"), a_task("task-b"), a_task("task-c"))
        for task_id, number, at in INBOX:
            keep(store, an_ask(f"{task_id}.{number}", task_id, number, created_at=NOON + at))
        return store

    def test_the_inbox_is_told_oldest_first(self, inbox: Store) -> None:
        with inbox.read() as view:
            asks = view.open_asks(limit=99)
            assert [ask.created_at for ask in asks] == sorted(ask.created_at for ask in asks)
            assert [ask.id for ask in asks] == [
                "task-b.2",
                "task-c.1",
                "task-a.1",
                "task-b.1",
                "task-c.2",
                "task-a.2",
            ]
            assert view.count_open_asks() == 6

    @pytest.mark.parametrize("size", [1, 2, 4, 6, 100])
    def test_pages_of_the_inbox_hold_each_ask_once(self, inbox: Store, size: int) -> None:
        seen: list[str] = []
        with inbox.read() as view:
            while page := view.open_asks(limit=size, after=seen[-1] if seen else None):
                seen += [ask.id for ask in page]
            assert seen == [ask.id for ask in view.open_asks(limit=99)]

    @pytest.mark.parametrize("size", [1, 2, 4, 6, 100])
    def test_pages_upwards_hold_each_ask_once(self, inbox: Store, size: int) -> None:
        with inbox.read() as view:
            every = view.open_asks(limit=99)
            seen = [every[-1].id]
            while page := view.open_asks(limit=size, before=seen[0]):
                seen = [*(ask.id for ask in page), *seen]
            assert seen == [ask.id for ask in every]
            assert view.open_asks(limit=9, after=every[1].id, before=every[4].id) == every[2:4]
            assert view.open_asks(limit=0, before=every[4].id) == []

    def test_the_ids_and_kinds_of_the_inbox_stand_in_its_order(self, inbox: Store) -> None:
        keep(inbox, an_approval("task-c.3", task_id="task-c", number=3, created_at=NOON + 99))
        with inbox.read() as view:
            first, second, *rest = view.open_asks(limit=99)
            assert view.open_ask_ids() == [(ask.id, ask.kind) for ask in (first, second, *rest)]
            assert view.open_ask_ids()[-1] == ("task-c.3", AskKind.APPROVAL)
        with inbox.change() as tx:
            tx.save_ask(first, settled(first, AskState.ANSWERED))
            tx.save_ask(second, replace(second, snoozed_until=NOON + 9))
        with inbox.read() as view:
            ids = [ask.id for ask in rest]
            assert [name for name, _ in view.open_ask_ids(awake_at=NOON)] == ids
            assert [name for name, _ in view.open_ask_ids()] == [second.id, *ids]
            before = view.open_asks(limit=9, before=rest[1].id, awake_at=NOON)
            assert before == rest[:1]

    def test_those_that_sleep_are_passed_over_until_their_time(self, inbox: Store) -> None:
        """Snoozed asks stay open, are told apart, and come back in their place."""
        with inbox.read() as view:
            first, second, third, *rest = view.open_asks(limit=99)
        with inbox.change() as tx:
            tx.save_ask(first, replace(first, snoozed_until=NOON + 9))
            tx.save_ask(third, replace(third, snoozed_until=NOON + 5))
        with inbox.read() as view:
            assert view.open_asks(limit=99, awake_at=NOON) == [second, *rest]
            assert view.open_asks(limit=2, awake_at=NOON, after=second.id) == rest[:2]
            assert [ask.id for ask in view.open_asks(limit=2, awake_at=NOON + 5)] == [
                second.id,
                third.id,
            ]
            assert [ask.id for ask in view.snoozed_asks(now=NOON, limit=9)] == [third.id, first.id]
            assert [ask.id for ask in view.snoozed_asks(now=NOON, limit=1)] == [third.id]
            assert [view.count_snoozed_asks(now=NOON + at) for at in (0, 5, 9)] == [2, 1, 0]
            assert view.count_open_asks() == 6
            assert len(view.open_asks(limit=99)) == 6

    def test_a_page_goes_on_after_an_ask_that_was_settled_meanwhile(self, inbox: Store) -> None:
        with inbox.read() as view:
            first, second, third, *_ = view.open_asks(limit=9)
        with inbox.change() as tx:
            tx.save_ask(second, settled(second, AskState.REJECTED))
        with inbox.read() as view:
            assert view.open_asks(limit=1, after=second.id) == [third]
            assert view.open_asks(limit=2) == [first, third]
            assert view.count_open_asks() == 5

    def test_asks_of_a_task_are_told_in_the_order_they_were_asked(self, store: Store) -> None:
        asks = [
            an_ask(
                f"ask-{9 - number}", number=number, run=1 + number // 4, created_at=NOON - number
            )
            for number in range(1, 6)
        ]
        asks[3] = settled(asks[3], AskState.ANSWERED)
        keep(store, a_task(), a_task("task-b"), *asks, an_ask("other", "task-b"))
        with store.read() as view:
            assert view.asks("task-a") == asks
            assert view.asks_of_run("task-a", 1) == asks[:3]
            assert view.asks_of_run("task-a", 2) == asks[3:]
            assert view.asks_of_run("task-b", 1) == [an_ask("other", "task-b")]
            assert view.asks_of_run("task-a", 3) == []
            assert view.open_asks_of("task-a") == [ask for ask in asks if ask.is_open]
            assert view.ask_numbered("task-a", 3) == asks[2]
            assert view.ask_numbered("task-b", 3) is None

    def test_runs_and_calls_are_told_in_order_and_apart(self, store: Store) -> None:
        keep(store, a_task(), a_task("task-b"))
        runs = [a_run(number=number) for number in range(1, 13)]
        calls = [a_call(number=number) for number in range(1, 13)]
        keep(store, *runs, *calls, a_run("task-b"), a_call("task-b"))
        with store.read() as view:
            assert view.runs("task-a") == runs
            assert view.calls("task-a") == calls
            assert view.runs("task-b") == [a_run("task-b")]

    @pytest.mark.parametrize("state", UNFINISHED)
    def test_calls_that_are_not_over_are_found_by_their_state(
        self, store: Store, state: CallState
    ) -> None:
        calls = [
            a_call(number=number, state=each, claimed_by="s")
            for number, each in enumerate([*CallState, *CallState], start=1)
        ]
        keep(
            store, a_task(), a_task("task-b"), *calls, a_call("task-b", state=state, claimed_by="s")
        )
        with store.read() as view:
            assert view.calls_in("task-a", state) == [call for call in calls if call.state is state]

"""Turns, the audit trail, wake-ups, and whatever people and programs say."""

import os

import msgspec
import pytest
from msgspec.structs import replace

from adjourn.core.ask import Approver, Terms
from adjourn.core.call import Command, command_body, slot_of
from adjourn.core.errors import AdjournError, NotFound
from adjourn.core.outbox import Outbox
from adjourn.core.states import AskState, TaskState
from adjourn.core.trail.events import first_broken
from adjourn.ports.store import Store, Turn
from adjourn.testing.open_stores import Open, OpensStores, is_awake
from adjourn.testing.store_samples import FULL_SPEC, FULL_TASK, add, everything, given_up, keep
from adjourn.testing.values import (
    NOON,
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_ask,
    an_event,
    settled,
)


class StoreTrail(OpensStores):
    """Turns, the audit trail, wake-ups, and whatever people and programs say."""

    # --- turns ------------------------------------------------------------------------------------

    def test_turns_are_counted_by_run_and_key(self, store: Store) -> None:
        keep(store, a_task(), a_task("task-b"), a_run(), a_run(number=2), a_run("task-b"))
        with store.change() as tx:
            for run, key in [
                ("task-a.1", "x"),
                ("task-a.1", "x"),
                ("task-a.1", "y"),
                ("task-a.2", "x"),
                ("task-b.1", "x"),
            ]:
                tx.add_turn(Turn(run_id=run, key=f"ask:{key}", thing="ask"))
        with store.read() as view:
            counts = {
                (run, key): view.count_turns(run, f"ask:{key}")
                for run in ("task-a.1", "task-a.2")
                for key in "xyz"
            }
        assert counts == {
            ("task-a.1", "x"): 2,
            ("task-a.1", "y"): 1,
            ("task-a.1", "z"): 0,
            ("task-a.2", "x"): 1,
            ("task-a.2", "y"): 0,
            ("task-a.2", "z"): 0,
        }

    @pytest.mark.parametrize(
        "key",
        [
            "ask:",
            "ask:" + "x" * 100_000,
            "ask:\0",
            "ask:naïve ☃",
            "run:/place\0./deploy",
            "ask:\udcff",
            "ask:ask:",
        ],
    )
    def test_any_key_can_be_counted(self, store: Store, key: str) -> None:
        keep(store, a_task(), a_run())
        with store.change() as tx:
            tx.add_turn(Turn(run_id="task-a.1", key=key, thing="ask"))
            assert tx.count_turns("task-a.1", key) == 1
            assert tx.count_turns("task-a.1", key + "x") == 0

    def test_what_a_run_asked_for_and_did_not_get_is_told_in_order(self, store: Store) -> None:
        keep(store, a_task(), a_run(), a_run(number=2))
        turns = [
            ("task-a.1", "ask:x", "ask-1", True),
            ("task-a.1", "ask:y", "ask-2", False),
            ("task-a.1", "left:b", "task-b", True),
        ]
        with store.change() as tx:
            for run, key, thing, left_open in [*turns, ("task-a.2", "ask:x", "ask-3", True)]:
                tx.add_turn(Turn(run_id=run, key=key, thing=thing, left_open=left_open))
        with store.read() as view:
            left = view.turns_left_open("task-a.1")
            assert [
                (turn.thing, turn.key.partition(":")[0], turn.run_id, turn.left_open)
                for turn in left
            ] == [
                ("ask-1", "ask", "task-a.1", True),
                ("task-b", "left", "task-a.1", True),
            ]

    # --- the audit trail --------------------------------------------------------------------------

    def test_events_come_back_exactly_and_in_order(self, store: Store) -> None:
        told = [
            an_event(facts={"call": 1, "digest": "ab", "none": None, "big": 2**53}),
            an_event(kind="ask_opened", by="adjourn", at=NOON - 5),
            an_event(kind="naïve ☃ \x1b", by="agent:\0", facts={}),
        ]
        keep(store, a_task(), a_task("task-b"))
        with store.change() as tx:
            for event in told:
                tx.append(event)
                tx.append(an_event("task-b"))
        with store.read() as view:
            assert view.events("task-a") == told
            assert [row.event for row in view.trail()][::2] == told
            assert first_broken(view.trail()) is None

    def test_the_trail_is_one_chain_over_many_changes(self, open_store: Open) -> None:
        keep(open_store(), a_task(), a_task("task-b"))
        for number in range(4):
            store = open_store()
            with store.change() as tx:
                tx.append(an_event(facts={"number": number}))
            with store.change() as tx:
                tx.append(an_event("task-b"))
                tx.append(an_event(facts={"number": -number}))
        with open_store().read() as view:
            trail = view.trail()
        assert len(trail) == 12
        assert first_broken(trail) is None

    def test_every_store_seals_a_story_alike(self, store: Store) -> None:
        """A chain that one store wrote can be checked by anyone.

        The seals depend on what happened alone.
        """
        keep(store, a_task(), a_task("task-b"))
        with store.change() as tx:
            for name in ("task-a", "task-b", "task-a"):
                tx.append(an_event(name))
        with store.read() as view:
            assert (
                view.trail()[-1].seal.hex()
                == "a87e3b9ef5f2cafaab9f335da8773f4235df2e6a79100991a92b6fbb888d1db5"
            )

    def test_forgetting_a_task_drops_all_of_it_but_its_links(self, store: Store) -> None:
        ended = a_task(state=TaskState.SUCCEEDED, slot=slot_of("s", "k", 1))
        keep(
            store,
            ended,
            a_run(checkpoint_id="ck"),
            a_call(),
            an_ask(slot=slot_of("s", "k", 2)),
            a_task("task-b"),
        )
        keep(
            store,
            a_run("task-b", checkpoint_id="kept"),
            a_call("task-b"),
            an_ask("ask-b", "task-b"),
        )
        with store.change() as tx:
            for name in ("task-a", "task-b", "task-a", "task-a", "task-b"):
                tx.append(an_event(name))
            tx.add_turn(Turn(run_id="task-a.1", key="ask:x", thing="ask-a", left_open=True))
            tx.add_turn(Turn(run_id="task-b.1", key="ask:x", thing="ask-b", left_open=True))
        seals = [row.seal for row in everything(store)[3]]
        with store.change() as tx:
            tx.append(an_event(kind="task_pruned"))
            tx.forget_task("task-a")
        with store.read() as view:
            assert [task.id for task in view.tasks(limit=9)] == ["task-b"]
            assert view.open_asks(limit=9) == [an_ask("ask-b", "task-b")]
            assert (
                view.tasks_like("ck") == view.tasks_like("task-a") == view.asks_like("ask-a") == []
            )
            assert view.task_in_slot(slot_of("s", "k", 1)) is None
            assert view.ask_in_slot(slot_of("s", "k", 2)) is None
            assert [row.event.task_id if row.event else None for row in view.trail()] == [
                None,
                "task-b",
                None,
                None,
                "task-b",
                None,
            ]
            assert [row.seal for row in view.trail()][:-1] == seals
            assert first_broken(view.trail()) is None
            assert view.runs("task-b") == [a_run("task-b", checkpoint_id="kept")]
            assert view.calls("task-b") == [a_call("task-b")]
            assert len(view.events("task-b")) == 2
            assert [turn.thing for turn in view.turns_left_open("task-b.1")] == ["ask-b"]
            for look in (view.task, view.runs, view.calls, view.asks, view.events):
                with pytest.raises(NotFound):
                    look("task-a")

    def test_the_chain_goes_on_after_a_task_was_forgotten(self, store: Store) -> None:
        keep(
            store,
            a_task(state=TaskState.FAILED),
            a_task("task-b", state=TaskState.FAILED),
            a_task("task-c"),
        )
        for name in ("task-a", "task-b"):
            with store.change() as tx:
                tx.append(an_event(name))
                tx.append(an_event("task-c"))
                tx.append(an_event(name, "task_pruned"))
                tx.forget_task(name)
                tx.append(an_event("task-c"))
            with store.read() as view:
                assert first_broken(view.trail()) is None
        keep(store, a_task("task-d"))
        with store.change() as tx:
            tx.append(an_event("task-d"))
        with store.read() as view:
            assert [row.event.task_id for row in view.trail() if row.event] == ["task-c"] * 4 + [
                "task-d"
            ]
            assert first_broken(view.trail()) is None

    def test_forgetting_nobody_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFound), store.change() as tx:
            tx.forget_task("nobody")

    def test_what_was_forgotten_is_gone_at_once(self, store: Store) -> None:
        keep(store, a_task(state=TaskState.FAILED), a_run())
        with store.change() as tx:
            assert tx.runs("task-a") == [a_run()]
            tx.forget_task("task-a")
            with pytest.raises(NotFound):
                tx.runs("task-a")

    # --- wake-ups ---------------------------------------------------------------------------------

    def test_every_listener_hears_every_change_of_anyone(self, open_store: Open) -> None:
        """C-R21: a decision takes effect at once, without polling."""
        one, other = open_store(), open_store()
        ears = [one.listen(), one.listen(), other.listen()]
        for number in range(5):
            assert not any(is_awake(ear) for ear in ears)
            keep(other if number % 2 else one, a_task(f"task-{number}"))
            assert all(is_awake(ear, within=2) for ear in ears), (
                "the wake-up is there as soon as the change has returned"
            )
            for ear in ears:
                ear.drain()
        for ear in ears:
            ear.close()

    def test_a_change_that_raised_wakes_nobody(self, store: Store) -> None:
        ear = store.listen()
        with given_up(store) as tx:
            tx.add_task(a_task())
        assert not is_awake(ear, within=0.05)
        ear.close()

    def test_a_listener_who_does_not_listen_holds_nobody_up(self, store: Store) -> None:
        deaf, awake = store.listen(), store.listen()
        for number in range(300):
            keep(store, a_task(f"task-{number}"))
        assert is_awake(deaf, within=2)
        assert is_awake(awake, within=2)
        while is_awake(deaf, within=0.1):
            deaf.drain()
        deaf.close()
        keep(store, a_task())
        awake.close()

    def test_a_spec_comes_back_exactly_also_with_words_that_are_not_utf_8(
        self, store: Store
    ) -> None:
        task = replace(
            FULL_TASK,
            spec=replace(
                FULL_SPEC, argv=(os.fsdecode(b"\xff"), "plain"), workspace=os.fsdecode(b"/\xfe")
            ),
        )
        keep(store, task)
        with store.read() as view:
            assert view.task("task-a") == task

    @pytest.mark.parametrize("size", [2_000_000])
    def test_large_words_can_be_kept(self, store: Store, size: int) -> None:
        large = "☃" * size
        body = command_body(Command(argv=(large,), cwd="/"))
        task, call = a_task(spec=a_spec(argv=(large,))), a_call(body=body)
        keep(store, task, call, an_ask(prompt=large))
        with store.read() as view:
            assert view.task("task-a") == task
            assert view.call("task-a", 1) == call
            assert view.ask("ask-a").prompt == large

    def test_an_id_is_given_once(self, store: Store) -> None:
        """Nothing that is kept is ever overwritten by something new of the same name."""
        keep(store, a_task(), a_run(), a_call(), an_ask())
        before = everything(store, "task-a")
        for again in (
            a_task(message="2"),
            a_run(message="2"),
            a_call(nonce="2"),
            an_ask(prompt="2"),
            an_ask(number=2),
        ):
            with pytest.raises(AdjournError), store.change() as tx:
                add(tx, again)
        assert everything(store, "task-a") == before

    def test_a_task_can_have_many_runs_calls_and_asks(self, store: Store) -> None:
        """A-R50: no limit on the number of pause/resume cycles that anyone will meet."""
        number = 1_000_000
        keep(
            store,
            a_task(runs=number),
            a_task("task-b"),
            a_run(number=number),
            a_call(number=number),
            an_ask(number=number),
        )
        with store.read() as view:
            assert view.run("task-a", number).number == number
            assert view.call("task-a", number).id == f"task-a.tc_{number}"
            assert view.ask("ask-a").number == number
            assert view.runs("task-b") == []

    def test_nobody_sees_a_frozen_value_change(self, store: Store) -> None:
        keep(store, a_task())
        with store.read() as view:
            task = view.task("task-a")
        with pytest.raises(AttributeError):
            task.state = TaskState.FAILED  # type: ignore[misc] # that is the point
        assert msgspec.structs.replace(task) == task

    # --- the trail as notifiers read it -----------------------------------------------------------

    def test_what_happened_is_read_from_a_place_on_in_order_and_by_pages(
        self, store: Store
    ) -> None:
        with store.change() as change:
            change.add_task(a_task("task-a"))
            change.add_task(a_task("task-b"))
            for number, task in enumerate(["task-a", "task-b", "task-a"]):
                change.append(an_event(task, at=NOON + number))
        with store.read() as view:
            everything = view.happened(after=0, limit=10)
            first = view.happened(after=0, limit=1)
            rest = view.happened(after=first[0].place, limit=10)
        assert [row.event.task_id for row in everything] == ["task-a", "task-b", "task-a"]
        assert first + rest == everything
        assert len({row.id for row in everything}) == 3

    def test_what_is_committed_later_has_a_later_place(self, store: Store) -> None:
        with store.change() as change:
            change.add_task(a_task())
            change.append(an_event())
        with store.read() as view:
            (before,) = view.happened(after=0, limit=10)
        with store.change() as change:
            change.append(an_event(kind="run_claimed"))
        with store.read() as view:
            (later,) = view.happened(after=before.place, limit=10)
        assert later.place > before.place
        assert later.event.kind == "run_claimed"

    def test_what_was_forgotten_did_not_happen_for_those_who_ask_later(self, store: Store) -> None:
        with store.change() as change:
            change.add_task(a_task("task-a"))
            change.add_task(a_task("task-b"))
            change.append(an_event("task-a"))
            change.append(an_event("task-b"))
        with store.change() as change:
            change.forget_task("task-a")
        with store.read() as view:
            assert [row.event.task_id for row in view.happened(after=0, limit=10)] == ["task-b"]

    def test_a_moment_has_its_place_in_the_trail(self, store: Store) -> None:
        with store.change() as change:
            change.add_task(a_task())
            for number in range(1200):
                change.append(an_event(at=NOON + number))
        with store.read() as view:
            assert view.place_before(NOON) == 0
            after = view.happened(after=view.place_before(NOON + 5), limit=1)
            assert [row.event.at for row in after] == [NOON + 5]
            assert view.happened(after=view.place_before(NOON + 2000), limit=1) == []

    def test_an_outbox_is_kept_and_replaced(self, open_store: Open) -> None:
        box = Outbox(cursor=1).failed(2, task_id="task-a", now=NOON, why="it answered 500")
        store = open_store()
        with store.read() as view:
            assert view.outbox("ops") is None
        for kept in (Outbox(cursor=1), box):
            with store.change() as change:
                change.save_outbox("ops", kept)
        with open_store().read() as view:
            assert view.outbox("ops") == box
            assert view.outbox("other") is None

    def test_a_document_that_belongs_to_no_task_is_kept_and_replaced(self, store: Store) -> None:
        with store.change() as tx:
            tx.keep_shared_document("policy:1", b"\x00first")
            tx.keep_shared_document("policy:2", b"")
            tx.keep_shared_document("policy:1", b"second")
        with store.read() as view:
            assert (view.shared_document("policy:1"), view.shared_document("policy:2")) == (
                b"second",
                b"",
            )
            assert view.shared_document("policy:3") is None

    def test_an_ask_keeps_its_terms_and_what_is_changed_of_it(self, store: Store) -> None:
        terms = Terms(approver=Approver.HUMAN, not_requester=True, signed=True, by_name=True)
        with store.change() as tx:
            tx.add_task(a_task())
            tx.add_ask(old := an_approval(gate=True, terms=terms, replaces="ask-0"))
            new = replace(settled(old, AskState.APPROVED, level="L1"), snoozed_until=NOON + 1)
            tx.save_ask(old, new)
        with store.read() as view:
            assert view.ask(old.id) == new

    def test_a_document_is_kept_by_name_until_it_is_replaced_or_dropped(
        self, open_store: Open
    ) -> None:
        store = open_store()
        with store.change() as tx:
            tx.add_task(a_task())
            tx.keep_document("task-a", "one", b"\x00first")
            tx.keep_document("task-a", "two", b"")
            tx.keep_document("task-a", "one", b"second")
        with open_store().read() as view:
            assert (view.document("task-a", "one"), view.document("task-a", "two")) == (
                b"second",
                b"",
            )
            assert view.document("task-a", "three") is None
        with store.change() as tx:
            tx.keep_document("task-a", "one", None)
            assert tx.document("task-a", "one") is None
            tx.forget_task("task-a")
            tx.add_task(a_task())
            assert tx.document("task-a", "two") is None

    def test_a_closed_turn_is_not_left_open(self, store: Store) -> None:
        with store.change() as tx:
            tx.add_task(a_task())
            tx.add_run(a_run())
            for thing in ("ask-1", "ask-2"):
                tx.add_turn(
                    Turn(run_id="task-a.1", key=f"ask:{thing}", thing=thing, left_open=True)
                )
            tx.close_turn("task-a.1", "ask-1")
            assert [turn.thing for turn in tx.turns_left_open("task-a.1")] == ["ask-2"]
            assert tx.count_turns("task-a.1", "ask:ask-1") == 1

"""What every store promises, promise by promise."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from threading import Barrier
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adjourn.core.ask import Ask, AskKind
from adjourn.core.call import Call, Command, command_body, digest_of, slot_of
from adjourn.core.errors import AdjournError, NotFound, Outdated
from adjourn.core.events import first_broken
from adjourn.core.identity import ProcessId
from adjourn.core.outbox import Outbox
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import OnRejection, PauseReason, Run, RunState, Spec, Task, Wish
from adjourn.core.terms import Approver, Terms
from adjourn.ports.store import Change, Store, Turn, View
from tests.contract.conftest import Open, is_awake
from tests.hostile import HOSTILE_WORDS
from tests.unit.values import NOON, a_call, a_run, a_spec, a_task, an_ask, an_event, settled

FULL_SPEC = Spec(
    runner="command",
    argv=("./deploy.sh", "", "--env=prod", "naïve ☃ \x1b[31m\0"),
    workspace="/srv/place with blanks",
    decision_arg=True,
    on_rejection=OnRejection.TELL,
    grace=0.25,
    parent_run="task-p.3",
    pool="there",
    expires_after=90_000,
)
FULL_TASK = Task(
    id="task-a",
    spec=FULL_SPEC,
    state=TaskState.WAITING,
    session_id="session",
    created_at=NOON,
    updated_at=NOON + 1,
    version=7,
    runs=3,
    calls=4,
    asks=5,
    next_call=4,
    tries=2,
    wish=Wish.CANCEL,
    message="why",
    slot=slot_of("session", "key", 1),
)
FULL_RUN = Run(
    task_id="task-a",
    number=3,
    state=RunState.PAUSED,
    call=4,
    supervisor="supervisor",
    created_at=NOON,
    updated_at=NOON + 1,
    version=2,
    session_id="session",
    shim=ProcessId(boot_id="boot", pid=2**22, start_time=2**40),
    exit_code=10,
    signal=9,
    message="why",
    checkpoint_id="checkpoint",
    paused_at=NOON + 1,
    pause_reason=PauseReason.USER_INTERRUPT,
    resumed_from=2,
    restart_of=1,
    superseded_by=4,
)
FULL_CALL = Call(
    task_id="task-a",
    number=4,
    tool="command",
    body=b"any bytes \xff\0",
    digest=digest_of(b"any bytes \xff\0"),
    nonce="nonce",
    state=CallState.EXECUTING,
    claimed_by="supervisor",
    approved_by="uid:1000",
    ask=5,
    version=3,
)
FULL_ASK = Ask(
    id="ask-a",
    task_id="task-a",
    number=5,
    run=3,
    kind=AskKind.APPROVAL,
    prompt="Deploy?\x1b]52;c;AAAA\x07",
    created_at=NOON,
    state=AskState.APPROVED,
    key="region",
    slot=slot_of("session", "key", 2),
    choices=("eu", "", "us"),
    call=4,
    manifest='{"plan": 1}',
    expires_at=NOON + 9,
    settled_at=NOON + 2,
    settled_by="uid:1000",
    reply="eu",
)


def keep(store: Store, *things: Task | Run | Call | Ask) -> None:
    """Put things into the store; those of a task come after it."""
    with store.change() as tx:
        for thing in things:
            add(tx, thing)


def add(tx: Change, thing: Task | Run | Call | Ask) -> None:
    match thing:
        case Task():
            tx.add_task(thing)
        case Run():
            tx.add_run(thing)
        case Call():
            tx.add_call(thing)
        case Ask():
            tx.add_ask(thing)


def everything(store: Store, *task_ids: str) -> Any:
    """Return all there is to read of some tasks and of the whole store."""
    with store.read() as view:
        return (
            view.tasks(limit=1000),
            view.open_asks(limit=1000),
            view.count_open_asks(),
            view.trail(),
            [(view.runs(name), view.calls(name), view.asks(name), view.events(name)) for name in task_ids],
        )


# --- what is kept comes back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [FULL_TASK, a_task()], ids=["full", "plain"])
def test_a_task_comes_back_exactly(store: Store, task: Task) -> None:
    """A-R4, A-R56"""
    keep(store, task)
    with store.read() as view:
        assert view.task("task-a") == task
        assert view.tasks(limit=9) == [task]


@pytest.mark.parametrize("run", [FULL_RUN, a_run(number=3)], ids=["full", "plain"])
def test_a_run_comes_back_exactly(store: Store, run: Run) -> None:
    """D-R8, D-R43: a paused run is kept with all that it takes to resume it."""
    keep(store, a_task(), run)
    with store.read() as view:
        assert view.run("task-a", 3) == run
        assert view.runs("task-a") == [run]


@pytest.mark.parametrize("call", [FULL_CALL, a_call(number=4)], ids=["full", "plain"])
def test_a_call_comes_back_exactly(store: Store, call: Call) -> None:
    keep(store, a_task(), call)
    with store.read() as view:
        assert view.call("task-a", 4) == call
        assert view.calls("task-a") == [call]


@pytest.mark.parametrize("ask", [FULL_ASK, an_ask("ask-a", number=5)], ids=["full", "plain"])
def test_an_ask_comes_back_exactly(store: Store, ask: Ask) -> None:
    """C-R3"""
    keep(store, a_task(), ask)
    with store.read() as view:
        assert view.ask("ask-a") == ask
        assert view.asks("task-a") == [ask]
        assert view.ask_numbered("task-a", 5) == ask


@pytest.mark.parametrize("state", TaskState)
def test_every_state_of_a_task_can_be_kept(store: Store, state: TaskState) -> None:
    """C-R2"""
    keep(store, a_task(state=state))
    with store.read() as view:
        assert view.task("task-a").state is state


@pytest.mark.parametrize("state", CallState)
def test_every_state_of_a_call_can_be_kept(store: Store, state: CallState) -> None:
    keep(store, a_task(), a_call(state=state, claimed_by="supervisor"))
    with store.read() as view:
        assert view.call("task-a", 1).state is state


@pytest.mark.parametrize("state", AskState)
def test_every_state_of_an_ask_can_be_kept(store: Store, state: AskState) -> None:
    """C-R3"""
    keep(store, a_task(), an_ask() if state is AskState.PENDING else settled(an_ask(), state))
    with store.read() as view:
        assert view.ask("ask-a").state is state


@pytest.mark.parametrize("state", RunState)
def test_every_state_of_a_run_can_be_kept(store: Store, state: RunState) -> None:
    """D-R34"""
    keep(store, a_task(), a_run(state=state))
    with store.read() as view:
        assert view.run("task-a", 1).state is state


def test_saving_puts_the_new_value_in_the_place_of_the_old(store: Store) -> None:
    keep(store, a_task(), a_run(), a_call(), an_ask())
    task = replace(FULL_TASK, version=2, created_at=NOON, slot=None)
    run = replace(a_run(), **_changed_fields(FULL_RUN))
    body = command_body(Command(argv=("other",), cwd="/", env={"AUTO_APPROVAL": "yes"}))
    call = replace(
        a_call(), state=CallState.CLAIMED, claimed_by="s", approved_by="me", ask=1, body=body, digest=digest_of(body), version=2
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


def _changed_fields(run: Run) -> dict[str, Any]:
    """Return the fields that change in the life of a run."""
    names = "state version updated_at shim exit_code signal message checkpoint_id paused_at pause_reason superseded_by"
    return {name: getattr(run, name) for name in names.split()}


# --- what is not there -------------------------------------------------------------------------------------------------

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
}


@pytest.mark.parametrize("look", LOOKS_FOR_NOTHING.values(), ids=LOOKS_FOR_NOTHING.keys())
def test_what_is_not_there_is_not_found(store: Store, look: Look) -> None:
    keep(store, a_task())
    with store.read() as view, pytest.raises(NotFound) as refusal:
        look(view)
    assert refusal.value.way_out


def test_what_may_be_missing_is_none(store: Store) -> None:
    keep(store, a_task())
    slot = slot_of("session", "key", 1)
    with store.read() as view:
        assert view.ask_in_slot(slot) is None
        assert view.task_in_slot(slot) is None
        assert view.ask_numbered("task-a", 1) is None
        assert view.run_of_checkpoint("none") is None


def test_an_empty_store_is_empty(store: Store) -> None:
    assert everything(store) == ([], [], 0, [], [])
    with store.read() as view:
        assert view.running() == []
        assert view.tasks_like("") == []
        assert view.asks_like("") == []


# --- all of it, or none ------------------------------------------------------------------------------------------------


class Disaster(BaseException):
    """Something nobody catches, as a Ctrl+C is."""


@contextmanager
def given_up(store: Store, *, because: type[BaseException] = Disaster) -> Iterator[Change]:
    """Open a change that ends badly."""
    try:
        with store.change() as tx:
            yield tx
            raise because("no")  # noqa: TRY301 -- that is the point
    except because:
        return


@pytest.mark.parametrize("disaster", [ValueError, Disaster, KeyboardInterrupt, SystemExit, Outdated])
def test_a_change_that_raised_leaves_no_trace(store: Store, disaster: type[BaseException]) -> None:
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


def test_a_change_that_found_a_conflict_half_way_leaves_no_trace(store: Store) -> None:
    keep(store, a_task(), an_ask())
    before = everything(store, "task-a")
    with pytest.raises(Outdated):
        _conflict_half_way(store)
    assert everything(store, "task-a") == before


def _conflict_half_way(store: Store) -> None:
    with store.change() as tx:
        tx.append(an_event())
        tx.save_ask(an_ask(), settled(an_ask(), AskState.ANSWERED, reply="eu"))
        tx.save_task(a_task(version=9), a_task(version=10))


def test_the_trail_goes_on_where_it_was_after_a_change_that_raised(store: Store) -> None:
    keep(store, a_task())
    for number in range(6):
        try:
            with store.change() as tx:
                tx.append(an_event(facts={"number": number}))
                if number % 2:
                    raise ValueError  # noqa: TRY301 -- that is the point
        except ValueError:
            continue
    with store.read() as view:
        assert [event.facts["number"] for event in view.events("task-a")] == [0, 2, 4]
        assert first_broken(view.trail()) is None


def test_a_change_reads_what_it_has_written_so_far(store: Store) -> None:
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


def test_what_was_changed_is_there_for_everyone(open_store: Open) -> None:
    """A-R4: whoever opens the store next needs nothing of the process that wrote."""
    writer = open_store()
    keep(writer, FULL_TASK, FULL_RUN, FULL_CALL, FULL_ASK)
    with writer.change() as tx:
        tx.append(an_event())
    assert everything(open_store(), "task-a") == everything(writer, "task-a")


def test_a_view_is_of_one_moment(open_store: Open) -> None:
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


def _answer_and_add(store: Store) -> None:
    with store.change() as tx:
        tx.save_ask(an_ask(), settled(an_ask(), AskState.ANSWERED))
        tx.save_task(a_task(), a_task(version=2))
        tx.add_task(a_task("task-b"))


def test_a_view_may_end_in_an_error_without_harm(store: Store) -> None:
    keep(store, a_task())
    with pytest.raises(NotFound), store.read() as view:
        view.task("nobody")
    keep(store, a_task("task-b"))
    assert len(everything(store)[0]) == 2


# --- compare and swap --------------------------------------------------------------------------------------------------

Save = Callable[[Change], None]
STALE: dict[str, Save] = {
    "task, other version": lambda tx: tx.save_task(a_task(version=2), a_task(version=3)),
    "task, other state": lambda tx: tx.save_task(a_task(state=TaskState.PAUSED), a_task(version=2)),
    "run, other version": lambda tx: tx.save_run(a_run(version=2), a_run(version=3)),
    "run, other state": lambda tx: tx.save_run(a_run(state=RunState.PAUSED), a_run(version=2)),
    "run that is not there": lambda tx: tx.save_run(a_run(number=9), a_run(number=9, version=2)),
    "call, other version": lambda tx: tx.save_call(a_call(version=2), a_call(version=3)),
    "call, other state": lambda tx: tx.save_call(a_call(state=CallState.PENDING), a_call(version=2)),
    "call, other digest": lambda tx: tx.save_call(a_call(digest="00" * 32), a_call(version=2)),
    "call, other claim": lambda tx: tx.save_call(a_call(claimed_by="other"), a_call(version=2)),
    "call that is not there": lambda tx: tx.save_call(a_call(number=9), a_call(number=9, version=2)),
    "ask, settled meanwhile": lambda tx: tx.save_ask(settled(an_ask(), AskState.ANSWERED), settled(an_ask(), AskState.ANSWERED)),
    "ask that is not there": lambda tx: tx.save_ask(
        an_ask("ask-z", number=9), settled(an_ask("ask-z", number=9), AskState.ANSWERED)
    ),
}


@pytest.mark.parametrize("save", STALE.values(), ids=STALE.keys())
def test_saving_over_something_else_is_refused(store: Store, save: Save) -> None:
    """C-R14: the decision is an UPDATE with its guard in the WHERE."""
    keep(store, a_task(), a_run(), a_call(), an_ask())
    before = everything(store, "task-a")
    with pytest.raises(Outdated), store.change() as tx:
        save(tx)
    assert everything(store, "task-a") == before


def test_a_call_of_somebody_else_is_not_taken(store: Store) -> None:
    claimed = a_call(state=CallState.CLAIMED, claimed_by="one")
    keep(store, a_task(), claimed)
    with pytest.raises(Outdated), store.change() as tx:
        tx.save_call(replace(claimed, claimed_by=None), replace(claimed, claimed_by="two"))
    with pytest.raises(Outdated), store.change() as tx:
        tx.save_call(replace(claimed, claimed_by="two"), replace(claimed, state=CallState.EXECUTING))


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


@pytest.mark.parametrize("race", [_race_for_the_task, _race_for_the_call, _race_for_the_ask], ids=["task", "call", "ask"])
def test_of_many_who_save_at_once_one_wins(open_store: Open, race: Race) -> None:
    """C-R14"""
    keep(open_store(), a_task(), a_call(), an_ask())
    together = Barrier(CROWD)
    with ThreadPoolExecutor(CROWD) as pool:
        winners = [name for name in pool.map(lambda name: _try(open_store, race, name, together), range(CROWD)) if name]
    with open_store().read() as view:
        held = (view.task("task-a").message, view.call("task-a", 1).claimed_by, view.ask("ask-a").reply)
    assert [word for word in held if word] == winners
    assert len(winners) == 1


def _try(open_store: Open, race: Race, name: int, together: Barrier) -> str | None:
    store = open_store()
    together.wait()
    try:
        race(store, name)
    except Outdated:
        return None
    return str(name)


def test_nothing_is_lost_when_many_add_at_once(open_store: Open) -> None:
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


# --- by what things are found ------------------------------------------------------------------------------------------


@pytest.fixture
def named(store: Store) -> Store:
    """Return a store with ids that begin alike."""
    keep(store, *(a_task(name) for name in ("abc1", "abc2", "abd1", "b%_1", "*?[a]")))
    keep(
        store,
        a_run("abc1", 1, checkpoint_id="ck1x"),
        a_run("abc1", 2, checkpoint_id="ck1y"),
        a_run("abc2", 1, checkpoint_id="ck2"),
    )
    keep(store, a_run("abd1", 1, checkpoint_id="abc9"), an_ask("ask1", "abc1"), an_ask("ask2", "abc1", 2), an_ask("b", "abc2"))
    return store


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


@pytest.mark.parametrize(("prefix", "found"), PREFIXES.items(), ids=map(ascii, PREFIXES))
def test_a_prefix_finds_tasks_by_their_id_or_a_checkpoint_of_theirs(named: Store, prefix: str, found: list[str]) -> None:
    """A-R5: resume works with the checkpoint id alone."""
    with named.read() as view:
        assert sorted(view.tasks_like(prefix)) == found


def test_a_hostile_name_finds_nothing_and_breaks_nothing(named: Store) -> None:
    """Ids come from argv, and argv is bytes."""
    words = (word for word in HOSTILE_WORDS if word not in {"", "*"})
    for word in (*words, os.fsdecode(b"\xff"), os.fsdecode(b"abc\xff"), "\ud800"):
        finds_nothing(named, word)


def finds_nothing(named: Store, word: str) -> None:
    with named.read() as view:
        assert view.tasks_like(word) == []
        assert view.asks_like(word) == []
        assert view.run_of_checkpoint(word) is None
        with pytest.raises(NotFound):
            view.task(word)
        with pytest.raises(NotFound):
            view.ask(word)


@pytest.mark.parametrize("prefix", ["", "a", "abc"])
def test_at_most_three_are_named(named: Store, prefix: str) -> None:
    with named.read() as view:
        assert len(view.tasks_like(prefix)) == 3


@pytest.mark.parametrize(
    ("prefix", "found"), {"ask": ["ask1", "ask2"], "ask1": ["ask1"], "b": ["b"], "%": [], "abc": []}.items(), ids=range(5)
)
def test_a_prefix_finds_asks(named: Store, prefix: str, found: list[str]) -> None:
    with named.read() as view:
        assert view.asks_like(prefix) == found


@pytest.mark.parametrize(
    ("prefix", "run"),
    {"ck1x": "abc1.1", "ck1y": "abc1.2", "ck1": None, "ck2": "abc2.1", "ck": None, "x": None}.items(),
    ids=range(6),
)
def test_a_checkpoint_leads_to_its_run(named: Store, prefix: str, run: str | None) -> None:
    with named.read() as view:
        found = view.run_of_checkpoint(prefix)
        assert (found.id if found else None) == run


def test_a_slot_leads_to_its_task(store: Store) -> None:
    slot = slot_of("session", "key", 1)
    keep(store, a_task("task-a", slot=slot_of("session", "key", 2)), a_task("task-b", slot=slot), a_task("task-c"))
    with store.read() as view:
        assert view.task_in_slot(slot) == a_task("task-b", slot=slot)


def test_a_slot_leads_to_its_newest_ask_that_was_not_withdrawn(store: Store) -> None:
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


# --- order and pages ---------------------------------------------------------------------------------------------------


def test_tasks_are_told_newest_first(store: Store) -> None:
    for number in range(5):
        keep(store, a_task(f"task-{number}", created_at=NOON - number, updated_at=NOON))
    with store.read() as view:
        assert [task.id for task in view.tasks(limit=9)] == ["task-4", "task-3", "task-2", "task-1", "task-0"]
        assert [task.id for task in view.tasks(limit=2)] == ["task-4", "task-3"]
        assert [task.id for task in view.tasks(limit=2, before="task-3")] == ["task-2", "task-1"]
        assert view.tasks(limit=9, before="task-0") == []


def test_tasks_are_told_by_state(store: Store) -> None:
    states = [TaskState.QUEUED, TaskState.RUNNING, TaskState.FAILED] * 3
    for number, state in enumerate(states):
        keep(store, a_task(f"task-{number}", state=state))
    with store.read() as view:
        assert [task.id for task in view.tasks(states=[TaskState.RUNNING], limit=2)] == ["task-7", "task-4"]
        some = view.tasks(states=[TaskState.FAILED, TaskState.QUEUED], limit=3, before="task-6")
        assert [task.id for task in some] == ["task-5", "task-3", "task-2"]
        assert view.tasks(states=[TaskState.PAUSED], limit=9) == []
        assert [task.id for task in view.running()] == ["task-1", "task-4", "task-7"]


def test_the_tasks_that_run_and_should_stop_are_told(store: Store) -> None:
    """A wish for what does not run any more is nobody's business."""
    keep(store, a_task("task-0", state=TaskState.RUNNING))
    keep(store, a_task("task-1", state=TaskState.RUNNING, wish=Wish.PAUSE))
    keep(store, a_task("task-2", state=TaskState.RUNNING, wish=Wish.CANCEL))
    keep(store, a_task("task-3", state=TaskState.WAITING, wish=Wish.PAUSE))
    with store.read() as view:
        assert view.unwanted() == {"task-1", "task-2"}


def test_what_can_be_started_is_told_oldest_first_and_by_pool(store: Store) -> None:
    """Only those who hold the workspace take its tasks."""
    here, there = a_spec(), a_spec(pool="there")
    for number, (spec, state) in enumerate(product((here, there), (TaskState.QUEUED, TaskState.RUNNING, TaskState.QUEUED))):
        keep(store, a_task(f"task-{number}", spec=spec, state=state, created_at=NOON - number))
    with store.read() as view:
        assert [task.id for task in view.queued(pool=here.pool, limit=9)] == ["task-0", "task-2"]
        assert [task.id for task in view.queued(pool="there", limit=1)] == ["task-3"]
        assert view.queued(pool="nowhere", limit=9) == []


def test_asks_whose_time_is_over_are_found(store: Store) -> None:
    """C-R3"""
    keep(store, a_task(), a_task("task-b"))
    times = [("task-b", 1, 5), ("task-a", 1, 6), ("task-a", 2, 4), ("task-b", 2, 9)]
    asks = [an_ask(f"{name}.{number}", name, number, expires_at=NOON + at) for name, number, at in times]
    over = settled(an_ask("settled", "task-a", 3, expires_at=NOON), AskState.ANSWERED)
    keep(store, *asks, over, an_ask("lasting", "task-a", 4))
    with store.read() as view:
        assert view.expired_asks(now=NOON + 3) == []
        assert [ask.id for ask in view.expired_asks(now=NOON + 6)] == ["task-a.1", "task-a.2", "task-b.1"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pages_of_tasks_hold_each_task_once(store: Store, size: int) -> None:
    keep(store, *(a_task(f"task-{number}") for number in range(7)))
    seen: list[str] = []
    with store.read() as view:
        while page := view.tasks(limit=size, before=seen[-1] if seen else None):
            seen += [task.id for task in page]
    assert seen == [f"task-{number}" for number in reversed(range(7))]


INBOX = [("task-b", 1, 5), ("task-a", 1, 5), ("task-c", 1, 4), ("task-a", 2, 9), ("task-c", 2, 5), ("task-b", 2, 1)]


@pytest.fixture
def inbox(store: Store) -> Store:
    """Return a store whose asks came while the clock jumped and stood still."""
    keep(store, a_task("task-a"), a_task("task-b"), a_task("task-c"))
    for task_id, number, at in INBOX:
        keep(store, an_ask(f"{task_id}.{number}", task_id, number, created_at=NOON + at))
    return store


def test_the_inbox_is_told_oldest_first(inbox: Store) -> None:
    with inbox.read() as view:
        asks = view.open_asks(limit=99)
        assert [ask.created_at for ask in asks] == sorted(ask.created_at for ask in asks)
        assert [ask.id for ask in asks] == ["task-b.2", "task-c.1", "task-a.1", "task-b.1", "task-c.2", "task-a.2"]
        assert view.count_open_asks() == 6


@pytest.mark.parametrize("size", [1, 2, 4, 6, 100])
def test_pages_of_the_inbox_hold_each_ask_once(inbox: Store, size: int) -> None:
    seen: list[str] = []
    with inbox.read() as view:
        while page := view.open_asks(limit=size, after=seen[-1] if seen else None):
            seen += [ask.id for ask in page]
        assert seen == [ask.id for ask in view.open_asks(limit=99)]


def test_those_that_sleep_are_passed_over_until_their_time(inbox: Store) -> None:
    """Snoozed asks stay open, are told apart, and come back in their place."""
    with inbox.read() as view:
        first, second, third, *rest = view.open_asks(limit=99)
    with inbox.change() as tx:
        tx.save_ask(first, replace(first, snoozed_until=NOON + 9))
        tx.save_ask(third, replace(third, snoozed_until=NOON + 5))
    with inbox.read() as view:
        assert view.open_asks(limit=99, awake_at=NOON) == [second, *rest]
        assert view.open_asks(limit=2, awake_at=NOON, after=second.id) == rest[:2]
        assert [ask.id for ask in view.open_asks(limit=2, awake_at=NOON + 5)] == [second.id, third.id]
        assert [ask.id for ask in view.snoozed_asks(now=NOON, limit=9)] == [third.id, first.id]
        assert [ask.id for ask in view.snoozed_asks(now=NOON, limit=1)] == [third.id]
        assert [view.count_snoozed_asks(now=NOON + at) for at in (0, 5, 9)] == [2, 1, 0]
        assert view.count_open_asks() == 6
        assert len(view.open_asks(limit=99)) == 6


def test_a_page_goes_on_after_an_ask_that_was_settled_meanwhile(inbox: Store) -> None:
    with inbox.read() as view:
        first, second, third, *_ = view.open_asks(limit=9)
    with inbox.change() as tx:
        tx.save_ask(second, settled(second, AskState.REJECTED))
    with inbox.read() as view:
        assert view.open_asks(limit=1, after=second.id) == [third]
        assert view.open_asks(limit=2) == [first, third]
        assert view.count_open_asks() == 5


def test_asks_of_a_task_are_told_in_the_order_they_were_asked(store: Store) -> None:
    asks = [an_ask(f"ask-{9 - number}", number=number, run=1 + number // 4, created_at=NOON - number) for number in range(1, 6)]
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


def test_runs_and_calls_are_told_in_order_and_apart(store: Store) -> None:
    keep(store, a_task(), a_task("task-b"))
    runs = [a_run(number=number) for number in range(1, 13)]
    calls = [a_call(number=number) for number in range(1, 13)]
    keep(store, *runs, *calls, a_run("task-b"), a_call("task-b"))
    with store.read() as view:
        assert view.runs("task-a") == runs
        assert view.calls("task-a") == calls
        assert view.runs("task-b") == [a_run("task-b")]


UNFINISHED = [CallState.PENDING, CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING, CallState.UNCERTAIN]


@pytest.mark.parametrize("state", UNFINISHED)
def test_calls_that_are_not_over_are_found_by_their_state(store: Store, state: CallState) -> None:
    calls = [a_call(number=number, state=each, claimed_by="s") for number, each in enumerate([*CallState, *CallState], start=1)]
    keep(store, a_task(), a_task("task-b"), *calls, a_call("task-b", state=state, claimed_by="s"))
    with store.read() as view:
        assert view.calls_in("task-a", state) == [call for call in calls if call.state is state]


# --- turns -------------------------------------------------------------------------------------------------------------


def test_turns_are_counted_by_run_and_key(store: Store) -> None:
    keep(store, a_task(), a_task("task-b"), a_run(), a_run(number=2), a_run("task-b"))
    with store.change() as tx:
        for run, key in [("task-a.1", "x"), ("task-a.1", "x"), ("task-a.1", "y"), ("task-a.2", "x"), ("task-b.1", "x")]:
            tx.add_turn(Turn(run_id=run, key=f"ask:{key}", thing="ask"))
    with store.read() as view:
        counts = {(run, key): view.count_turns(run, f"ask:{key}") for run in ("task-a.1", "task-a.2") for key in "xyz"}
    assert counts == {
        ("task-a.1", "x"): 2,
        ("task-a.1", "y"): 1,
        ("task-a.1", "z"): 0,
        ("task-a.2", "x"): 1,
        ("task-a.2", "y"): 0,
        ("task-a.2", "z"): 0,
    }


@pytest.mark.parametrize(
    "key", ["ask:", "ask:" + "x" * 100_000, "ask:\0", "ask:naïve ☃", "run:/place\0./deploy", "ask:\udcff", "ask:ask:"]
)
def test_any_key_can_be_counted(store: Store, key: str) -> None:
    keep(store, a_task(), a_run())
    with store.change() as tx:
        tx.add_turn(Turn(run_id="task-a.1", key=key, thing="ask"))
        assert tx.count_turns("task-a.1", key) == 1
        assert tx.count_turns("task-a.1", key + "x") == 0


def test_what_a_run_asked_for_and_did_not_get_is_told_in_order(store: Store) -> None:
    keep(store, a_task(), a_run(), a_run(number=2))
    turns = [("task-a.1", "ask:x", "ask-1", True), ("task-a.1", "ask:y", "ask-2", False), ("task-a.1", "left:b", "task-b", True)]
    with store.change() as tx:
        for run, key, thing, left_open in [*turns, ("task-a.2", "ask:x", "ask-3", True)]:
            tx.add_turn(Turn(run_id=run, key=key, thing=thing, left_open=left_open))
    with store.read() as view:
        left = view.turns_left_open("task-a.1")
        assert [(turn.thing, turn.key.partition(":")[0], turn.run_id, turn.left_open) for turn in left] == [
            ("ask-1", "ask", "task-a.1", True),
            ("task-b", "left", "task-a.1", True),
        ]


# --- the audit trail ---------------------------------------------------------------------------------------------------


def test_events_come_back_exactly_and_in_order(store: Store) -> None:
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


def test_the_trail_is_one_chain_over_many_changes(open_store: Open) -> None:
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


def test_every_store_seals_a_story_alike(store: Store) -> None:
    """A chain that one store wrote can be checked by anyone: the seals depend on what happened alone."""
    keep(store, a_task(), a_task("task-b"))
    with store.change() as tx:
        for name in ("task-a", "task-b", "task-a"):
            tx.append(an_event(name))
    with store.read() as view:
        assert view.trail()[-1].seal.hex() == "a87e3b9ef5f2cafaab9f335da8773f4235df2e6a79100991a92b6fbb888d1db5"


def test_forgetting_a_task_drops_all_of_it_but_its_links(store: Store) -> None:
    ended = a_task(state=TaskState.SUCCEEDED, slot=slot_of("s", "k", 1))
    keep(store, ended, a_run(checkpoint_id="ck"), a_call(), an_ask(slot=slot_of("s", "k", 2)), a_task("task-b"))
    keep(store, a_run("task-b", checkpoint_id="kept"), a_call("task-b"), an_ask("ask-b", "task-b"))
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
        assert view.tasks_like("ck") == view.tasks_like("task-a") == view.asks_like("ask-a") == []
        assert view.task_in_slot(slot_of("s", "k", 1)) is None
        assert view.ask_in_slot(slot_of("s", "k", 2)) is None
        assert [row.event.task_id if row.event else None for row in view.trail()] == [None, "task-b", None, None, "task-b", None]
        assert [row.seal for row in view.trail()][:-1] == seals
        assert first_broken(view.trail()) is None
        assert view.runs("task-b") == [a_run("task-b", checkpoint_id="kept")]
        assert view.calls("task-b") == [a_call("task-b")]
        assert len(view.events("task-b")) == 2
        assert [turn.thing for turn in view.turns_left_open("task-b.1")] == ["ask-b"]
        for look in (view.task, view.runs, view.calls, view.asks, view.events):
            with pytest.raises(NotFound):
                look("task-a")


def test_the_chain_goes_on_after_a_task_was_forgotten(store: Store) -> None:
    keep(store, a_task(state=TaskState.FAILED), a_task("task-b", state=TaskState.FAILED), a_task("task-c"))
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
        assert [row.event.task_id for row in view.trail() if row.event] == ["task-c"] * 4 + ["task-d"]
        assert first_broken(view.trail()) is None


def test_forgetting_nobody_is_refused(store: Store) -> None:
    with pytest.raises(NotFound), store.change() as tx:
        tx.forget_task("nobody")


def test_what_was_forgotten_is_gone_at_once(store: Store) -> None:
    keep(store, a_task(state=TaskState.FAILED), a_run())
    with store.change() as tx:
        assert tx.runs("task-a") == [a_run()]
        tx.forget_task("task-a")
        with pytest.raises(NotFound):
            tx.runs("task-a")


# --- wake-ups ----------------------------------------------------------------------------------------------------------


def test_every_listener_hears_every_change_of_anyone(open_store: Open) -> None:
    """C-R21: a decision takes effect at once, without polling."""
    one, other = open_store(), open_store()
    ears = [one.listen(), one.listen(), other.listen()]
    for number in range(5):
        assert not any(is_awake(ear) for ear in ears)
        keep(other if number % 2 else one, a_task(f"task-{number}"))
        assert all(is_awake(ear, within=2) for ear in ears), "the wake-up is there as soon as the change has returned"
        for ear in ears:
            ear.drain()
    for ear in ears:
        ear.close()


def test_a_change_that_raised_wakes_nobody(store: Store) -> None:
    ear = store.listen()
    with given_up(store) as tx:
        tx.add_task(a_task())
    assert not is_awake(ear, within=0.05)
    ear.close()


def test_a_listener_who_does_not_listen_holds_nobody_up(store: Store) -> None:
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


# --- whatever people and programs say ----------------------------------------------------------------------------------

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50), st.sampled_from([w for w in HOSTILE_WORDS if w.isprintable()])
)
words = st.one_of(texts, st.binary(max_size=20).map(os.fsdecode))


@given(texts, texts, texts)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_any_text_can_be_kept(store: Store, one: str, other: str, third: str) -> None:
    ask = an_ask(prompt=one, choices=(other, third), key=third, manifest=other)
    answered = replace(settled(ask, AskState.ANSWERED, reply=one), settled_by=other)
    event = an_event(by=one, facts={"said": other})
    with given_up(store) as tx:
        tx.add_task(a_task(message=one))
        tx.add_run(a_run(message=third))
        tx.add_ask(ask)
        tx.save_ask(ask, answered)
        tx.append(event)
        assert tx.task("task-a").message == one
        assert tx.run("task-a", 1).message == third
        assert tx.ask("ask-a") == answered
        assert tx.events("task-a") == [event]
        assert first_broken(tx.trail()) is None


@given(st.lists(words, max_size=3).map(tuple), words)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_a_command_line_of_any_bytes_can_be_kept(store: Store, argv: tuple[str, ...], workspace: str) -> None:
    """What the operating system hands us need not be UTF-8; it must not be lost, and must not stop anybody."""
    task = a_task(spec=a_spec(argv=argv, workspace=workspace))
    moved = replace(task, spec=replace(task.spec, workspace=f"{workspace}/elsewhere"), version=2)
    with given_up(store) as tx:
        tx.add_task(task)
        assert tx.task("task-a") == task
        tx.save_task(task, moved)
        assert tx.task("task-a") == moved


def test_a_spec_comes_back_exactly_also_with_words_that_are_not_utf_8(store: Store) -> None:
    task = replace(FULL_TASK, spec=replace(FULL_SPEC, argv=(os.fsdecode(b"\xff"), "plain"), workspace=os.fsdecode(b"/\xfe")))
    keep(store, task)
    with store.read() as view:
        assert view.task("task-a") == task


@pytest.mark.parametrize("size", [2_000_000])
def test_large_words_can_be_kept(store: Store, size: int) -> None:
    large = "☃" * size
    body = command_body(Command(argv=(large,), cwd="/"))
    task, call = a_task(spec=a_spec(argv=(large,))), a_call(body=body)
    keep(store, task, call, an_ask(prompt=large))
    with store.read() as view:
        assert view.task("task-a") == task
        assert view.call("task-a", 1) == call
        assert view.ask("ask-a").prompt == large


def test_an_id_is_given_once(store: Store) -> None:
    """Nothing that is kept is ever overwritten by something new of the same name."""
    keep(store, a_task(), a_run(), a_call(), an_ask())
    before = everything(store, "task-a")
    for again in (a_task(message="2"), a_run(message="2"), a_call(nonce="2"), an_ask(prompt="2"), an_ask(number=2)):
        with pytest.raises(AdjournError), store.change() as tx:
            add(tx, again)
    assert everything(store, "task-a") == before


def test_a_task_can_have_many_runs_calls_and_asks(store: Store) -> None:
    """A-R50: no limit on the number of pause/resume cycles that anyone will meet."""
    number = 1_000_000
    keep(store, a_task(runs=number), a_task("task-b"), a_run(number=number), a_call(number=number), an_ask(number=number))
    with store.read() as view:
        assert view.run("task-a", number).number == number
        assert view.call("task-a", number).id == f"task-a.tc_{number}"
        assert view.ask("ask-a").number == number
        assert view.runs("task-b") == []


def test_nobody_sees_a_frozen_value_change(store: Store) -> None:
    keep(store, a_task())
    with store.read() as view:
        task = view.task("task-a")
    with pytest.raises(AttributeError):
        task.state = TaskState.FAILED  # type: ignore[misc] # that is the point
    assert msgspec.structs.replace(task) == task


# --- the trail as notifiers read it ---------------------------------------------------------------------------------------


def test_what_happened_is_read_from_a_place_on_in_order_and_by_pages(store: Store) -> None:
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


def test_what_is_committed_later_has_a_later_place(store: Store) -> None:
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


def test_what_was_forgotten_did_not_happen_for_those_who_ask_later(store: Store) -> None:
    with store.change() as change:
        change.add_task(a_task("task-a"))
        change.add_task(a_task("task-b"))
        change.append(an_event("task-a"))
        change.append(an_event("task-b"))
    with store.change() as change:
        change.forget_task("task-a")
    with store.read() as view:
        assert [row.event.task_id for row in view.happened(after=0, limit=10)] == ["task-b"]


def test_a_moment_has_its_place_in_the_trail(store: Store) -> None:
    with store.change() as change:
        change.add_task(a_task())
        for number in range(1200):
            change.append(an_event(at=NOON + number))
    with store.read() as view:
        assert view.place_before(NOON) == 0
        after = view.happened(after=view.place_before(NOON + 5), limit=1)
        assert [row.event.at for row in after] == [NOON + 5]
        assert view.happened(after=view.place_before(NOON + 2000), limit=1) == []


def test_an_outbox_is_kept_and_replaced(open_store: Open) -> None:
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


def test_a_document_that_belongs_to_no_task_is_kept_and_replaced(store: Store) -> None:
    with store.change() as tx:
        tx.keep_shared_document("policy:1", b"\x00first")
        tx.keep_shared_document("policy:2", b"")
        tx.keep_shared_document("policy:1", b"second")
    with store.read() as view:
        assert (view.shared_document("policy:1"), view.shared_document("policy:2")) == (b"second", b"")
        assert view.shared_document("policy:3") is None


def test_an_ask_keeps_its_terms_and_what_is_changed_of_it(store: Store) -> None:
    terms = Terms(approver=Approver.HUMAN, not_requester=True, signed=True, by_name=True)
    with store.change() as tx:
        tx.add_task(a_task())
        tx.add_ask(old := an_ask(gate=True, terms=terms, replaces="ask-0"))
        tx.save_ask(old, new := replace(old, snoozed_until=NOON + 1, level="L1"))
    with store.read() as view:
        assert view.ask(old.id) == new


def test_a_document_is_kept_by_name_until_it_is_replaced_or_dropped(open_store: Open) -> None:
    store = open_store()
    with store.change() as tx:
        tx.add_task(a_task())
        tx.keep_document("task-a", "one", b"\x00first")
        tx.keep_document("task-a", "two", b"")
        tx.keep_document("task-a", "one", b"second")
    with open_store().read() as view:
        assert (view.document("task-a", "one"), view.document("task-a", "two")) == (b"second", b"")
        assert view.document("task-a", "three") is None
    with store.change() as tx:
        tx.keep_document("task-a", "one", None)
        assert tx.document("task-a", "one") is None
        tx.forget_task("task-a")
        tx.add_task(a_task())
        assert tx.document("task-a", "two") is None


def test_a_closed_turn_is_not_left_open(store: Store) -> None:
    with store.change() as tx:
        tx.add_task(a_task())
        tx.add_run(a_run())
        for thing in ("ask-1", "ask-2"):
            tx.add_turn(Turn(run_id="task-a.1", key=f"ask:{thing}", thing=thing, left_open=True))
        tx.close_turn("task-a.1", "ask-1")
        assert [turn.thing for turn in tx.turns_left_open("task-a.1")] == ["ask-2"]
        assert tx.count_turns("task-a.1", "ask:ask-1") == 1

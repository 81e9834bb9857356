"""What PostgreSQL and its engine promise beyond what every store does.

One holder, for the length of a lease.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from adjourn.controller.runs import Claimed
from adjourn.core.ask import Reply, Verb
from adjourn.core.errors import Conflict, Outdated, StoreProblem
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import Task
from adjourn.core.trail.events import first_broken
from adjourn.ports.store import Change
from adjourn.ports.world import Vanished
from adjourn.stores.postgres.leases import PostgresLeases
from adjourn.stores.postgres.listener import NotifyListener
from adjourn.stores.postgres.store import PostgresStore
from adjourn.testing.open_stores import is_awake
from adjourn.testing.values import a_task
from tests.contract.office import ASKS_90, DONE, ME, Office
from tests.e2e.shell import until
from tests.shared.desk import desk
from tests.stateful.world import shim_of

Open = Callable[..., PostgresStore]
SHORT = 1.0  # seconds


@pytest.fixture
def opened(database: str) -> Iterator[Open]:
    stores: list[PostgresStore] = []

    def once_more(**words: Any) -> PostgresStore:
        stores.append(PostgresStore(database, **words))
        return stores[-1]

    yield once_more
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Open) -> PostgresStore:
    return opened()


@pytest.fixture
def sql(database: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    with psycopg.connect(database, autocommit=True) as connection:

        def say(statement: str) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        yield say


Sql = Callable[[str], list[tuple[Any, ...]]]
ROWS = "SELECT state FROM absurd.r_adjourn_default UNION ALL SELECT state FROM absurd.t_adjourn_default"


def anything(_: Task) -> bool:
    return True


def keep_twice(tx: Change, task: Task) -> None:
    tx.add_task(task)
    tx.add_task(task)


# --- the engine's rows ----------------------------------------------------------------------------


def test_only_a_task_that_is_queued_or_runs_has_a_row_in_the_engine(
    store: PostgresStore, sql: Sql
) -> None:
    """A waiting or paused task costs no row there, and no process."""
    office = desk(store)
    task = office.start()
    assert sql(ROWS) == [("pending",), ("pending",)]
    claimed = office.begin(task)
    assert sql(ROWS) == [("running",), ("running",)]
    office.controller.runs.finish(claimed.run, ASKS_90)
    assert office.task(task.id).state is TaskState.WAITING
    assert sql(ROWS) == []
    queued = office.reply(office.open_ask(task), Verb.APPROVE)
    assert sql(ROWS) == [("pending",), ("pending",)]
    office.controller.tasks.pause(task.id, by=ME)
    assert sql(ROWS) == []
    office.controller.tasks.resume(task.id, by=ME)
    assert sql(ROWS) == [("pending",), ("pending",)]
    office.controller.tasks.cancel(queued.id, by=ME)
    assert sql(ROWS) == []


def test_the_engine_never_tries_again_by_itself(store: PostgresStore, sql: Sql) -> None:
    desk(store).start()
    assert sql("SELECT max_attempts, retry_strategy FROM absurd.t_adjourn_default") == [(1, None)]


def test_a_decision_that_is_not_saved_queues_nothing(store: PostgresStore, sql: Sql) -> None:
    office = desk(store)
    task = office.start()
    office.controller.tasks.give_up(task.id, why="no")
    office.controller.tasks.forget(task.id, by=ME)
    assert sql("SELECT count(*) FROM adjourn.family")[0] == (0,)
    with pytest.raises(StoreProblem), store.change() as tx:
        keep_twice(tx, a_task())
    assert sql("SELECT count(*) FROM adjourn.task")[0] == (0,)
    assert sql(ROWS) == []


def test_a_pool_may_have_any_name(store: PostgresStore) -> None:
    office = desk(store)
    for pool in ("gpu", 'Größe "1"; --', "x" * 200):
        task = office.start(pool=pool)
        found = store.next_queued(pool, supervisor="anna", fits=anything)
        assert found is not None
        assert found.id == task.id
    assert store.next_queued("nobody's", supervisor="anna", fits=anything) is None


ENTERED = """
SELECT task_name, params, t.headers, retry_strategy, max_attempts, cancellation, first_started_at, t.state, attempts,
    completed_payload, cancelled_at, idempotency_key, last_attempt_run = run_id, r.attempt, r.state, claimed_by, claim_expires_at,
    wake_event, event_payload, started_at, completed_at, failed_at, result, failure_reason, available_at <= clock_timestamp(),
    substr(task_id::text, 15, 1), substr(task_id::text, 1, 6)
FROM absurd.t_adjourn_default AS t JOIN absurd.r_adjourn_default AS r USING (task_id) ORDER BY enqueue_at
"""
SPAWN = """
SELECT absurd.spawn_task('adjourn_default', 'run', jsonb_build_object('task', no), '{"max_attempts": 1}') FROM adjourn.task
"""


def test_what_enters_a_queue_is_what_the_engine_itself_would_put_there(
    store: PostgresStore, sql: Sql
) -> None:
    """Its rows are written by statements of our own, which are planned once."""
    desk(store).start()
    sql(SPAWN)
    ours, theirs = sql(ENTERED)
    assert ours == theirs


# --- who takes what -------------------------------------------------------------------------------


def test_workers_are_offered_different_tasks_oldest_first(opened: Open) -> None:
    one, other = opened(), opened()
    tasks = [desk(one).start() for _ in range(4)]
    offered = [
        store.next_queued("default", supervisor=name, fits=anything)
        for store, name in ((one, "a"), (other, "b")) * 2
    ]
    assert [task.id for task in offered if task] == [task.id for task in tasks]
    assert other.next_queued("default", supervisor="b", fits=anything) is None


def heard(store: PostgresStore, ear: NotifyListener, *, supervisor: str) -> Task:
    """Return the task that was just queued, offered because it was heard of."""

    def is_heard() -> bool:
        ear.drain()
        return bool(ear._queued)

    until(is_heard, what="it is heard of")
    found = store.next_queued("default", supervisor=supervisor, fits=anything)
    assert found is not None
    return found


EARS = (
    "FROM pg_stat_activity WHERE application_name = 'adjourn ear' AND datname = current_database()"
)


def test_an_ear_whose_connection_is_cut_hears_again(opened: Open, database: str) -> None:
    """Whoever polls it is woken until it listens again."""
    store = opened()
    ear, office = store.listen(), desk(store)
    with psycopg.connect(database, autocommit=True) as owner:
        for _ in range(3):
            ((cut,),) = owner.execute(f"SELECT pid {EARS}".encode()).fetchall()
            owner.execute("SELECT pg_terminate_backend(%s)", [cut])
            while owner.execute(f"SELECT pid {EARS} AND pid != {cut}".encode()).fetchone() is None:
                assert is_awake(ear, within=5)
                ear.drain()
            task = office.start()
            assert heard(store, ear, supervisor="anna").id == task.id
    ear.close()


def test_of_all_who_hear_of_a_task_one_gets_it(opened: Open) -> None:
    """They look at it without taking it; what was seen counts only while it is so."""
    stores = [opened() for _ in range(3)]
    offices, ears = [desk(store) for store in stores], [store.listen() for store in stores]
    with ThreadPoolExecutor() as pool:
        for _ in range(10):
            task = offices[0].start()
            offered = [
                heard(store, ear, supervisor=str(store.name))
                for store, ear in zip(stores, ears, strict=True)
            ]
            assert [found.id for found in offered] == [task.id] * 3
            assert sum(pool.map(claimed_by, offices, offered, ("anna", "bert", "carl"))) == 1
    for ear in ears:
        ear.close()


def claimed_by(office: Office, task: Task, supervisor: str) -> bool:
    try:
        return isinstance(office.controller.runs.claim(task.id, supervisor=supervisor), Claimed)
    except Conflict:
        return False


def test_what_was_foreseen_of_a_task_counts_only_while_it_is_so(opened: Open) -> None:
    here, there = opened(), opened()
    ear, office, others = here.listen(), desk(here), desk(there)

    def foreseen() -> Task:
        others.start()
        return heard(here, ear, supervisor="anna")

    gone_on = foreseen()
    others.controller.tasks.pause(gone_on.id, by=ME)
    others.controller.tasks.resume(gone_on.id, by=ME)
    assert claimed_by(office, gone_on, "anna"), "it is queued, if otherwise than it was"
    assert office.task(gone_on.id).runs == 1
    canceled = foreseen()
    others.controller.tasks.cancel(canceled.id, by=ME)
    assert not claimed_by(office, canceled, "anna")
    assert office.task(canceled.id).state is TaskState.CANCELED
    in_other_hands = foreseen()
    with there.change() as tx:
        tx.task(in_other_hands.id)
        assert not claimed_by(office, in_other_hands, "anna"), "whoever claims waits for nobody"
    assert claimed_by(office, in_other_hands, "anna")
    ear.close()


def test_what_does_not_fit_a_machine_stays_for_another(opened: Open) -> None:
    one, other = opened(), opened()
    office = desk(one)
    first, second = office.start(), office.start()
    found = one.next_queued("default", supervisor="a", fits=lambda task: task.id == second.id)
    assert found is not None
    assert found.id == second.id
    time.sleep(5.1)
    again = other.next_queued("default", supervisor="b", fits=anything)
    assert again is not None
    assert again.id == first.id


def test_a_task_that_was_taken_and_never_started_is_offered_again(opened: Open) -> None:
    store = opened(lease=SHORT)
    task = desk(store).start()
    assert store.next_queued("default", supervisor="dead", fits=anything) is not None
    time.sleep(SHORT + 0.1)
    offered = [store.next_queued("default", supervisor="anna", fits=anything) for _ in range(2)]
    assert [found.id for found in offered if found] == [task.id]


def test_a_certain_task_can_be_taken_out_of_the_middle(store: PostgresStore) -> None:
    office = desk(store)
    _, second, _ = (office.start() for _ in range(3))
    office.begin(second)
    offered = {
        task.id
        for _ in range(3)
        if (task := store.next_queued("default", supervisor="b", fits=anything))
    }
    assert len(offered) == 2
    assert second.id not in offered


def test_a_task_that_another_is_about_to_start_cannot_be_taken(opened: Open) -> None:
    one, other = opened(), opened()
    office = desk(one)
    task = office.start()
    assert one.next_queued("default", supervisor="anna-0", fits=anything)
    with pytest.raises(Outdated):
        desk(other).begin(task, supervisor="bert-0")
    office.begin(task, supervisor="anna-0")


def test_a_start_that_failed_rests_before_it_is_tried_again(store: PostgresStore) -> None:
    office = desk(store)
    claimed = office.begin(office.start())
    office.controller.runs.fail_to_start(claimed.run, why="no room")
    assert store.next_queued("default", supervisor="b", fits=anything) is None
    time.sleep(0.6)
    assert store.next_queued("default", supervisor="b", fits=anything) is not None


def test_many_workers_take_every_task_once(opened: Open) -> None:
    office = desk(opened())
    tasks = {office.start().id for _ in range(60)}

    def take(number: int) -> list[str]:
        store = opened()
        name = f"worker-{number}"
        found: list[str] = []
        while task := store.next_queued("default", supervisor=name, fits=anything):
            desk(store).begin(task, supervisor=name)
            found.append(task.id)
        return found

    with ThreadPoolExecutor(6) as crowd:
        taken = [name for names in crowd.map(take, range(6)) for name in names]
    assert sorted(taken) == sorted(tasks)


# --- leases and fences ----------------------------------------------------------------------------


def test_whoever_lost_its_lease_writes_nothing_more(opened: Open) -> None:
    """A worker that was stopped past its lease finds that its token fits nothing any more."""
    late, next_one = desk(opened(lease=SHORT)), desk(opened(lease=SHORT))
    claimed = late.begin(late.start())
    next_one.processes.of_run[claimed.run.id] = late.processes.of_run[claimed.run.id]
    next_one.processes.of_run[claimed.run.id].state = Vanished()
    assert next_one.controller.runs.recover() == []
    time.sleep(SHORT + 0.1)
    (lost,) = next_one.controller.runs.recover()
    assert lost.state is TaskState.WAITING
    before = next_one.events(lost)
    with pytest.raises(Conflict):
        late.controller.runs.finish(claimed.run, DONE)
    with pytest.raises(Conflict):
        late.controller.runs.lose(claimed.run)
    with pytest.raises(Conflict):
        late.controller.runs.release(claimed.run, why="late")
    with pytest.raises(Conflict):
        late.controller.runs.fail_to_start(claimed.run, why="late")
    assert next_one.events(lost) == before
    with next_one.controller.store.read() as view:
        assert view.call(lost.id, 1).state is CallState.UNCERTAIN


def test_a_lease_that_is_over_and_that_nobody_took_still_counts(opened: Open) -> None:
    """A result is a fact: as long as nobody else has decided on the run, it is taken."""
    office = desk(opened(lease=SHORT))
    claimed = office.begin(office.start())
    time.sleep(SHORT + 0.1)
    assert office.controller.runs.finish(claimed.run, DONE).state is TaskState.SUCCEEDED


def test_the_engine_may_take_a_lease_away_before_anybody_decides(opened: Open) -> None:
    """Absurd fails what is over when somebody else claims.

    The run is then an orphan, and its supervisor is fenced off.
    """
    office, other = desk(opened(lease=SHORT)), opened(lease=SHORT)
    claimed = office.begin(office.start())
    time.sleep(SHORT + 0.1)
    assert other.next_queued("default", supervisor="b", fits=anything) is None
    with pytest.raises(Outdated):
        office.controller.runs.finish(claimed.run, DONE)
    office.processes.of_run[claimed.run.id].state = Vanished()
    (lost,) = office.controller.runs.recover()
    assert lost.state is TaskState.WAITING


def test_a_run_that_never_started_is_queued_again_when_its_lease_is_over(opened: Open) -> None:
    office = desk(opened(lease=SHORT))
    task = office.start()
    claimed = office.controller.runs.claim(task.id, supervisor="dead")
    assert isinstance(claimed, Claimed)
    time.sleep(SHORT + 0.1)
    (released,) = office.controller.runs.recover()
    assert released.state is TaskState.QUEUED
    with pytest.raises(Conflict):
        office.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
    assert office.run(released).state is TaskState.SUCCEEDED


def test_a_beating_supervisor_keeps_its_runs_and_others_leave_them_alone(
    opened: Open, database: str
) -> None:
    office = desk(opened(lease=SHORT))
    leases = PostgresLeases(database, length=SHORT, machine="boot", host="here", about=b"{}")
    claimed = office.begin(office.start())
    for _ in range(4):
        time.sleep(SHORT / 2)
        assert leases.beat("anna-0", [claimed.run.id]) == {claimed.run.id}
        assert office.controller.runs.orphans() == []
    leases.close()
    assert office.controller.runs.finish(claimed.run, DONE).state is TaskState.SUCCEEDED


def test_a_run_that_nobody_watches_is_lost_though_its_supervisor_lives(
    opened: Open, database: str
) -> None:
    """A start that the store cut short must not be held for ever by the very supervisor that gave it up."""
    office = desk(opened(lease=SHORT))
    leases = PostgresLeases(database, length=SHORT, machine="boot", host="here", about=b"{}")
    claimed = office.claim(office.start())
    for _ in range(4):
        time.sleep(SHORT / 3)
        assert leases.beat("anna-0", []) == set()
    leases.close()
    (released,) = office.controller.runs.recover()
    assert (released.id, released.state) == (claimed.task.id, TaskState.QUEUED)


def test_whoever_lost_a_run_is_told_by_its_next_beat(opened: Open, database: str) -> None:
    office = desk(opened(lease=SHORT))
    leases = PostgresLeases(database, length=SHORT, machine="boot", host="here", about=b"{}")
    claimed = office.begin(office.start())
    office.processes.of_run[claimed.run.id].state = Vanished()
    time.sleep(SHORT + 0.1)
    assert office.controller.runs.recover()
    assert leases.beat("anna-0", [claimed.run.id]) == set()
    assert [name for name, _, _ in opened().supervisors()] == ["anna-0"]
    leases.leave("anna-0")
    leases.close()
    assert opened().supervisors() == []


# --- many at once ---------------------------------------------------------------------------------


def test_decisions_on_the_same_tasks_in_any_order_never_wait_in_a_circle(opened: Open) -> None:
    office = desk(opened())
    for _ in range(10):
        asks = [office.waiting()[1] for _ in range(4)]
        replies = [Reply(ask_id=ask.id, verb=Verb.APPROVE) for ask in asks]

        def decide(backwards: bool, replies: list[Reply] = replies) -> str:  # noqa: FBT001 -- one of two threads
            try:
                desk(opened()).controller.decisions.decide(
                    replies[::-1] if backwards else replies, by=ME
                )
            except Conflict as error:
                return type(error).__name__
            return "decided"

        with ThreadPoolExecutor(2) as both:
            assert sorted(both.map(decide, (False, True)))[1:] == ["decided"]


def test_a_child_that_ends_and_a_parent_that_is_canceled_never_wait_in_a_circle(
    opened: Open,
) -> None:
    office = desk(opened())
    for _ in range(10):
        parent = office.begin(office.start())
        child = office.start_inside(parent.run)
        office.controller.runs.finish(parent.run, ASKS_90)
        running = office.begin(office.task(child.id))
        acts = [
            lambda run=running.run: desk(opened()).controller.runs.finish(run, DONE),
            lambda name=parent.task.id: desk(opened()).controller.tasks.cancel(name, by=ME),
        ]
        with ThreadPoolExecutor(2) as both:
            done = list(both.map(lambda act: act(), acts))
        assert done[0].state is TaskState.SUCCEEDED


def test_many_writers_make_one_chain(opened: Open) -> None:
    def live(_: int) -> None:
        office = desk(opened())
        for _ in range(5):
            office.run(office.start())

    with ThreadPoolExecutor(6) as crowd:
        list(crowd.map(live, range(6)))
    with opened().read() as view:
        trail = view.trail()
        assert len(trail) == 6 * 5 * 4
        assert first_broken(trail) is None

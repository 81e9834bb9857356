"""What a login puts into the queues with SQL of its own must be a task that is queued, in the queue of its pool."""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from adjourn.core.ask import Verb
from adjourn.core.states import TaskState
from tests.contract.office import Office
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time

Login = psycopg.Connection[tuple[object, ...]]
POOLS = ("default", "other")
ENQUEUE = 'SELECT adjourn."enqueue_adjourn_{pool}"(no, %(task)s, %(run)s) FROM adjourn.task WHERE id = %(id)s'
DEQUEUE = (
    'SELECT adjourn."dequeue_adjourn_{pool}"(no, engine_task) FROM adjourn.task WHERE id = %(id)s'
)
WRITE = """
SELECT adjourn.write_task(no, '{state}', version + 1, slot, {call}, wish, body, {engine}, head) FROM adjourn.task
WHERE id = %(id)s
"""
OWN = "%(task)s, %(run)s"


@pytest.fixture(params=["approver", "worker", "agent"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hostile(as_role: Roles, role: str) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("hostile", of=role), autocommit=True) as login:
        yield login


def attempt(hostile: Login, task_id: str, *statements: str) -> None:
    """Run statements about a task in one transaction."""
    values = {"id": task_id, "task": uuid4(), "run": uuid4()}
    with hostile.transaction():
        for statement in statements:
            hostile.execute(statement.encode(), values)


def contents_of(database: str) -> list[object]:
    with psycopg.connect(database) as owner:
        return [
            owner.execute(b"TABLE absurd.t_adjourn_" + pool.encode() + b" ORDER BY 1").fetchall()
            for pool in POOLS
        ]


@pytest.mark.parametrize("pool", POOLS)
def test_nobody_puts_a_task_into_a_queue_that_is_not_to_be_there(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    database: str,
    hostile: Login,
    pool: str,
) -> None:
    """Whether it waits, has ended, runs, is queued already or does not exist.

    And workers still find what is theirs.
    """
    worker = offices["worker"]
    worker.run(worker.start(pool="other"))
    ended, (waiting, _) = worker.run(worker.start()), worker.waiting()
    running, queued = worker.begin(worker.start()).task, worker.start()
    before = contents_of(database)
    for task in (ended, waiting, running, queued):
        with pytest.raises(errors.InsufficientPrivilege):
            attempt(hostile, task.id, ENQUEUE.format(pool=pool))
    with pytest.raises(errors.InsufficientPrivilege):
        hostile.execute(
            f"SELECT adjourn.enqueue_adjourn_{pool}(NULL, %s, %s)".encode(), [uuid4(), uuid4()]
        )
    with pytest.raises(errors.InsufficientPrivilege):
        hostile.execute(
            f"SELECT adjourn.enqueue_adjourn_{pool}(999999, %s, %s)".encode(), [uuid4(), uuid4()]
        )
    assert contents_of(database) == before
    taken = worker.controller.store.next_queued("default", supervisor="anna-1", fits=lambda _: True)
    assert taken
    assert taken.id == queued.id


@pytest.fixture
def approved(offices: dict[str, Office]) -> str:  # noqa: F811 -- the fixture
    """Return a task that was approved, taken, and put to pause again.

    Its next call is approved, and it is in no queue.
    """
    worker, approver = offices["worker"], offices["approver"]
    worker.run(worker.start(pool="other"))
    task = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(task), Verb.APPROVE)
    return task.id


@pytest.mark.parametrize("role", ["approver"], indirect=True)
def test_an_approver_leaves_no_task_in_another_queue_than_its_own(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    database: str,
    hostile: Login,
    approved: str,
) -> None:
    worker = offices["worker"]
    other = worker.start()
    before = contents_of(database)
    engine_of_other = f"(SELECT engine_task FROM adjourn.task WHERE id = '{other.id}'), NULL"  # noqa: S608 -- our own id
    same, next_call = "engine_task, engine_run", "next_call"
    for statements in (
        # It is taken out of one queue and put into another.
        [
            DEQUEUE.format(pool="default"),
            WRITE.format(state="paused", call=next_call, engine="NULL, NULL"),
            ENQUEUE.format(pool="other"),
            WRITE.format(state="queued", call=next_call, engine=OWN),
        ],
        # It is canceled, and stays in its queue, where it keeps everybody from what comes after it.
        [WRITE.format(state="canceled", call=next_call, engine="NULL, NULL")],
        # It is out of its queue, and is said to be in it.
        [DEQUEUE.format(pool="default")],
        [WRITE.format(state="queued", call=next_call, engine=OWN)],
        # It takes the place of another, which is then taken out.
        [WRITE.format(state="queued", call=next_call, engine=engine_of_other)],
        [
            WRITE.format(state="queued", call=next_call, engine=engine_of_other),
            DEQUEUE.format(pool="default"),
            WRITE.format(state="queued", call=next_call, engine=same),
        ],
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            attempt(hostile, approved, *statements)
        assert contents_of(database) == before, statements
    assert worker.run(worker.task(approved)).state is TaskState.SUCCEEDED
    assert worker.run(worker.task(other.id)).state is TaskState.SUCCEEDED

"""What the database lets an agent, an approver and a worker do, whatever program they use."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from adjourn.core.ask import Verb
from adjourn.core.errors import StoreRefused
from adjourn.core.states import TaskState
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import ASKS_90, DONE, ME, Office
from tests.shared.conftest import Roles
from tests.shared.desk import desk

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time


@pytest.fixture
def office(database: str, as_role: Roles) -> Iterator[Office]:  # noqa: ARG001 -- the guards are there
    store = PostgresStore(database)
    yield desk(store)
    store.close()


@pytest.fixture
def offices(as_role: Roles) -> Iterator[dict[str, Office]]:
    stores = {role: PostgresStore(as_role(role)) for role in ("agent", "approver", "worker")}
    yield {role: desk(store) for role, store in stores.items()}
    for store in stores.values():
        store.close()


def test_together_they_do_all_there_is_to_do(offices: dict[str, Office]) -> None:
    worker, agent, approver = offices["worker"], offices["agent"], offices["approver"]
    run = worker.begin(worker.start()).run
    ask = agent.ask(run)
    assert worker.controller.finish(run, ASKS_90).state is TaskState.WAITING
    assert approver.reply(ask, Verb.ANSWER, "eu").state is TaskState.QUEUED
    again = worker.begin(worker.task(ask.task_id)).run
    assert agent.ask(again).reply == "eu"
    assert worker.controller.finish(again, DONE).state is TaskState.SUCCEEDED
    task, approval = worker.waiting()
    assert approver.reply(approval, Verb.APPROVE).state is TaskState.QUEUED
    assert worker.run(worker.task(task.id)).state is TaskState.SUCCEEDED
    approver.controller.cancel(worker.start(pool="new").id, by=ME)


@pytest.mark.parametrize("role", ["agent", "worker"])
@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT])
def test_only_an_approver_decides(offices: dict[str, Office], role: str, verb: Verb) -> None:
    task, ask = offices["worker"].waiting()
    with pytest.raises(StoreRefused) as caught:
        offices[role].reply(ask, verb)
    assert caught.value.exit_code == 5
    assert offices["worker"].task(task.id).state is TaskState.WAITING


def test_an_agent_answers_nothing_and_starts_nothing(offices: dict[str, Office]) -> None:
    run = offices["worker"].begin(offices["worker"].start()).run
    ask = offices["agent"].ask(run)
    with pytest.raises(StoreRefused):
        offices["agent"].reply(ask, Verb.ANSWER, "eu")
    with pytest.raises(StoreRefused):
        offices["agent"].start()
    with pytest.raises(StoreRefused):
        offices["agent"].controller.finish(run, DONE)


def test_an_approver_runs_nothing(offices: dict[str, Office]) -> None:
    task = offices["worker"].start()
    with pytest.raises(StoreRefused):
        offices["approver"].begin(task)
    with pytest.raises(StoreRefused):
        offices["approver"].start()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE adjourn.ask SET state = 'approved', settled_at = 1",
        "UPDATE adjourn.call SET state = 'approved' WHERE state = 'pending'",
        "UPDATE adjourn.call SET digest = 'x' WHERE state = 'pending'",
        "UPDATE adjourn.call_body SET body = 'x'",
        "INSERT INTO adjourn.call SELECT 1, 'approved', 1, digest, claimed_by, body FROM adjourn.call LIMIT 1",
        "INSERT INTO adjourn.ask VALUES (1, '', 'approved', 'question', 1, 1, NULL, NULL, NULL, 1, NULL, NULL, '')",
        "UPDATE adjourn.task SET state = 'queued', next_call = 2",
        "UPDATE adjourn.task SET state = 'succeeded'",
        "UPDATE adjourn.run SET state = 'succeeded'",
        "DELETE FROM adjourn.ask",
        "DELETE FROM adjourn.event",
        "UPDATE adjourn.event SET body = 'x'",
        "SELECT * FROM absurd.spawn_task('adjourn_default', 'run', '{\"task\": 1}')",
        "SELECT * FROM absurd.claim_task('adjourn_default', 'me', 30, 1)",
        "ALTER TABLE adjourn.ask DISABLE TRIGGER guard",
        "DROP TRIGGER guard ON adjourn.ask",
        "INSERT INTO adjourn.schema_version VALUES (2)",
    ],
)
def test_an_agent_that_speaks_sql_is_refused_as_well(office: Office, as_role: Roles, statement: str) -> None:
    office.waiting()
    office.start()
    with psycopg.connect(as_role("agent"), autocommit=True) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(statement.encode())


@pytest.mark.parametrize("role", ["agent", "approver", "worker"])
def test_what_was_decided_is_not_decided_again(office: Office, as_role: Roles, role: str) -> None:
    _, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    with psycopg.connect(as_role(role), autocommit=True) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("UPDATE adjourn.ask SET state = 'rejected'")

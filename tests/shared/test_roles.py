"""What the database lets an agent, an approver and a worker do, whatever program they use."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from adjourn.core.ask import Principal, Proposal, Verb
from adjourn.core.errors import StoreRefused
from adjourn.core.events import Event
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.stores.bodies import event_body
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import ASKS_90, DONE, Office
from tests.postgres import Server
from tests.shared.conftest import Roles
from tests.shared.desk import desk
from tests.unit.policies import policy

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time


def office_of(store: PostgresStore) -> Office:
    """Return an office whose people are logins of the database."""
    office = desk(store)
    office.me = Principal(name=f"db:{store.login[0]}")
    return office


@pytest.fixture
def office(database: str, as_role: Roles) -> Iterator[Office]:  # noqa: ARG001 -- the guards are there
    store = PostgresStore(database)
    yield office_of(store)
    store.close()


@pytest.fixture
def offices(as_role: Roles) -> Iterator[dict[str, Office]]:
    stores = {role: PostgresStore(as_role(role)) for role in ("agent", "approver", "worker")}
    yield {role: office_of(store) for role, store in stores.items()}
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
    approver.controller.cancel(worker.start(pool="new").id, by=approver.me)


def test_what_the_policy_never_allows_an_agent_turns_down_by_itself(offices: dict[str, Office]) -> None:
    """It decides nothing by that: who judges by the policy may say no, in the name of the policy."""
    agent, worker = offices["agent"], offices["worker"]
    agent.rules.policy = policy('never = "reject"\n[[rule]]\ntool = "*"\naction = "never"\n')
    run = worker.begin(worker.start()).run
    ask, call = agent.controller.propose(
        run.id, Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    )
    assert (ask.state, ask.settled_by, call.state) == (AskState.REJECTED, "policy", CallState.REJECTED)


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
        "INSERT INTO adjourn.ask VALUES (1, '', 'approved', 'question', 1, 1, NULL, NULL, NULL, 1, NULL, NULL, NULL, '')",
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


FORGERIES = {
    "the name of another login": "settled_by = 'db:bert'",
    "a user of some machine": "settled_by = 'uid:0'",
    "nobody": "settled_by = NULL",
    "the program itself": "settled_by = 'adjourn'",
    "the policy": "settled_by = 'policy'",
    "a key without its signature": "settled_by = 'key:bert', level = 'L0'",
    "a level that a webhook has not": "settled_by = 'webhook:chat', level = 'L1'",
}
APPROVE = "UPDATE adjourn.ask SET state = 'approved', settled_at = 1, {} WHERE state = 'pending'"


def test_an_approver_who_speaks_sql_decides_in_its_own_name_only(office: Office, as_role: Roles) -> None:
    task, _ = office.waiting()
    with psycopg.connect(as_role("approver"), autocommit=True) as anna:
        for forgery in FORGERIES.values():
            with pytest.raises(errors.InsufficientPrivilege):
                anna.execute(APPROVE.format(forgery).encode())
        assert office.task(task.id).state is TaskState.WAITING
        anna.execute(APPROVE.format("settled_by = 'db:' || session_user, level = 'L1'").encode())
    assert str(office.scene(task).asks[-1].settled_by).startswith("db:approver_")


def test_nobody_tells_the_trail_what_another_login_did(office: Office, as_role: Roles) -> None:
    """Nor who started a task: what a decision is worth hangs on that."""
    task, _ = office.waiting()
    tell = b"SELECT adjourn.seal_events(ARRAY[(SELECT no FROM adjourn.task LIMIT 1)], ARRAY[%b::bytea], ARRAY['\\x00'::bytea])"
    bodies = {
        by: event_body(Event(task_id=task.id, kind="approved", by=by, at=1)) for by in ("db:bert", "db:" + "b" * 60, "uid:0")
    }
    whole = bodies["db:bert"]
    spelt_otherwise = [b"\xdc\x00\x04" + whole[1:], whole.replace(b"\xa7db:bert", b"\xda\x00\x07db:bert"), whole[:3], b""]
    for role in ("agent", "approver", "worker"):
        with psycopg.connect(as_role(role), autocommit=True) as login:
            for body in [*bodies.values(), *spelt_otherwise]:
                with pytest.raises(psycopg.DatabaseError):
                    login.execute(tell % f"'\\x{body.hex()}'".encode())
    assert {event.by for event in office.events(task)} == {"adjourn", office.me.name}


def test_a_guard_calls_no_function_of_those_whom_it_guards(
    office: Office, postgres: Server, database: str, as_role: Roles
) -> None:
    task, _ = office.waiting()
    url = as_role("agent")
    postgres.do("CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO PUBLIC", str(conninfo_to_dict(database)["dbname"]))
    with psycopg.connect(url, autocommit=True) as agent:
        agent.execute("CREATE FUNCTION theirs.pg_has_role(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
        agent.execute("SET search_path = theirs, pg_catalog")
        with pytest.raises(errors.InsufficientPrivilege):
            agent.execute(APPROVE.format("settled_by = 'db:' || session_user").encode())
    postgres.do("DROP SCHEMA theirs CASCADE", str(conninfo_to_dict(database)["dbname"]))
    assert office.task(task.id).state is TaskState.WAITING

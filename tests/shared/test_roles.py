"""What the database lets an agent, an approver and a worker do, whatever program they use."""

import contextlib
from collections.abc import Iterator

import msgspec
import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from adjourn.controller.runs import Claimed
from adjourn.core.ask import Principal, Proposal, Question, Reply, Terms, Verb, Verdict
from adjourn.core.clarification import Request
from adjourn.core.errors import NotFound, StoreRefused
from adjourn.core.kept_documents import SAVED
from adjourn.core.states import AskState, CallMove, CallState, TaskState
from adjourn.core.task import Task
from adjourn.core.trail.events import Event
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.shapes import event_body
from adjourn.testing.values import settlement_of
from tests.contract.office import ASKS_10, ASKS_90, DONE, Office
from tests.postgres import Server
from tests.shared.conftest import Roles, login_at
from tests.shared.desk import desk
from tests.unit.policies import policy

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time


def office_of(store: PostgresStore) -> Office:
    """Return an office whose people are logins of the database."""
    office = desk(store)
    office.me = Principal(name=f"db:{store.login[0]}")
    office.now = store.now()  # the database believes in no other time
    return office


@pytest.fixture
def office(database: str, as_role: Roles) -> Iterator[Office]:  # noqa: ARG001 -- the guards are there
    store = PostgresStore(database)
    yield office_of(store)
    store.close()


@pytest.fixture
def offices(as_role: Roles) -> Iterator[dict[str, Office]]:
    stores = {role: PostgresStore(as_role(role)) for role in ("agent", "approver", "worker")}
    found = {role: office_of(store) for role, store in stores.items()}
    begin = found["worker"].begin

    def begin_and_hand_over(task: Task, *, supervisor: str = "anna-0") -> Claimed:
        """Begin a run, and give its process the key, as a supervisor does."""
        stores["agent"].key = stores["worker"].run_key(task.id)
        return begin(task, supervisor=supervisor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found["worker"], "begin", begin_and_hand_over)
        yield found
    for store in stores.values():
        store.close()


def test_together_they_do_all_there_is_to_do(offices: dict[str, Office]) -> None:
    worker, agent, approver = offices["worker"], offices["agent"], offices["approver"]
    run = worker.begin(worker.start()).run
    ask = agent.ask(run)
    assert worker.controller.runs.finish(run, ASKS_90).state is TaskState.WAITING
    assert approver.reply(ask, Verb.ANSWER, "eu").state is TaskState.QUEUED
    again = worker.begin(worker.task(ask.task_id)).run
    assert agent.ask(again).reply == "eu"
    assert worker.controller.runs.finish(again, DONE).state is TaskState.SUCCEEDED
    task, approval = worker.waiting()
    assert approver.reply(approval, Verb.APPROVE).state is TaskState.QUEUED
    assert worker.run(worker.task(task.id)).state is TaskState.SUCCEEDED
    approver.controller.tasks.cancel(worker.start(pool="new").id, by=approver.me)


def test_an_agent_asks_in_every_way_there_is_and_makes_the_calls_that_it_is_handed(
    offices: dict[str, Office],
) -> None:
    worker, agent, approver = offices["worker"], offices["agent"], offices["approver"]
    run = worker.begin(worker.start()).run
    agent.controller.documents.keep(run.task_id, SAVED, b"so far")
    _, (question,) = agent.controller.asks.clarify(
        run.id, Request(questions=(Question(prompt="Where?", key="Q1"),))
    )
    deploy = Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    ask, _ = agent.controller.asks.propose(run.id, deploy)
    worker.controller.runs.finish(run, ASKS_10)
    approver.reply(question, Verb.ANSWER, "eu")
    approver.reply(ask, Verb.APPROVE)
    again = worker.begin(worker.task(run.task_id)).run
    _, call = agent.controller.asks.propose(again.id, deploy)
    assert (call.state, call.approved_by) == (CallState.EXECUTING, approver.me.name)
    agent.controller.asks.close_call(again.id, call, CallMove.FINISH)
    assert worker.controller.runs.finish(again, DONE).state is TaskState.SUCCEEDED


def test_what_the_policy_never_allows_an_agent_turns_down_by_itself(
    offices: dict[str, Office],
) -> None:
    """It decides nothing by that.

    Who judges by the policy may say no, in the name of the policy.
    """
    agent, worker = offices["agent"], offices["worker"]
    agent.rules.policy = policy('never = "reject"\n[[rule]]\ntool = "*"\naction = "never"\n')
    run = worker.begin(worker.start()).run
    ask, call = agent.controller.asks.propose(
        run.id, Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    )
    assert (ask.state, settlement_of(ask).by, call.state) == (
        AskState.REJECTED,
        "policy",
        CallState.REJECTED,
    )


def test_a_server_decides_for_people_whom_it_logged_in_and_is_worth_what_its_login_is(
    offices: dict[str, Office], as_role: Roles, postgres: Server
) -> None:
    """Whose login started a task cannot make another person of itself."""
    url = as_role("server")
    store = PostgresStore(url)
    server = office_of(store)
    server.me = Principal(name="web:anna", through=server.me.name)
    _, ask = offices["worker"].waiting()
    assert server.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
    with store.read() as view:
        settled = settlement_of(view.ask(ask.id))
    assert (settled.by, settled.level) == ("web:anna", "L1")
    with store.change() as tx:  # what it showed where, and how far it has read a chat
        tx.keep_document(ask.task_id, f"sent:chat:{ask.id}", b"[]")
        tx.keep_shared_document("heard:chat", b"1")
    approver = offices["approver"].controller.store
    for name in ("sent:chat:x", "links:x"):
        with pytest.raises(StoreRefused), approver.change() as tx:
            tx.keep_document(ask.task_id, name, b"[]")
    with pytest.raises(StoreRefused), approver.change() as tx:
        tx.keep_shared_document("heard:chat", b"9")
    store.close()
    postgres.do(f"GRANT adjourn_worker TO {conninfo_to_dict(url)['user']}")
    store = PostgresStore(url)
    office_of(store).waiting()
    store.close()
    with (
        psycopg.connect(url, autocommit=True) as login,
        pytest.raises(errors.InsufficientPrivilege, match="is not worth L1"),
    ):
        login.execute(APPROVE.format("'web:anna', 'L1'").encode())


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
        offices["agent"].controller.runs.finish(run, DONE)


def test_an_approver_runs_nothing(offices: dict[str, Office]) -> None:
    task = offices["worker"].start()
    with pytest.raises(StoreRefused):
        offices["approver"].begin(task)
    with pytest.raises(StoreRefused):
        offices["approver"].start()


@pytest.mark.parametrize("role", ["agent", "approver"])
def test_what_a_role_may_not_settle_keeps_it_from_nothing(
    offices: dict[str, Office], database: str, role: str
) -> None:
    """A run of a dead machine, and an ask whose time is over, wait for those who may.

    Each goes on with what is its own.
    """
    worker, office = offices["worker"], offices[role]
    _, ask = worker.waiting(expires_after=1)
    begun = worker.claim(worker.start(), supervisor="dead").run
    with psycopg.connect(database) as owner:
        owner.execute("UPDATE absurd.r_adjourn_default SET claim_expires_at = '-infinity'")
    worker.now = office.now = worker.now + 1000
    office.controller.runs.recover()
    assert office.task(begun.task_id).state is TaskState.RUNNING
    worker.controller.runs.recover()
    assert worker.task(begun.task_id).state is TaskState.QUEUED
    assert worker.scene_of(ask.task_id).asks[-1].state is AskState.EXPIRED


NOBODYS = [
    "UPDATE adjourn.ask SET kind = 'question' WHERE state = 'pending'",
    "UPDATE adjourn.ask SET call = 7 WHERE state = 'pending'",
    "UPDATE adjourn.ask_body SET body = 'x'",
    "UPDATE adjourn.ask SET state = 'rejected' WHERE state = 'approved'",
    "UPDATE adjourn.family SET no = no + 1000",
    "INSERT INTO adjourn.event SELECT -5, task, body, link, seal FROM adjourn.event LIMIT 1",
    "UPDATE adjourn.event SET body = NULL",
    "UPDATE adjourn.event SET body = 'x'",
    "UPDATE adjourn.event SET seal = 'x'",
    "UPDATE adjourn.call_body SET body = 'x'",
    "UPDATE adjourn.call SET digest = 'x'",
    "UPDATE adjourn.call SET digest = sha256('x'), approved_by = 'db:' || session_user WHERE state = 'approved'",
    "UPDATE adjourn.call SET state = 'approved' WHERE state = 'done'",
    "UPDATE adjourn.turn SET thing = 'x'",
    "DELETE FROM adjourn.event",
    "DELETE FROM adjourn.ask",
    "DELETE FROM adjourn.ask_body",
    "DELETE FROM adjourn.call",
    "DELETE FROM adjourn.task",
    "DELETE FROM absurd.queues",
    "SELECT absurd.create_queue('theirs')",
    "SELECT absurd.drop_queue('adjourn_default')",
    "INSERT INTO adjourn.schema_version VALUES (6)",
    "ALTER TABLE adjourn.ask DISABLE TRIGGER guard",
    "DROP TRIGGER guard ON adjourn.ask",
    "SET session_replication_role = replica",
    "SET SESSION AUTHORIZATION postgres",
    "GRANT adjourn_approver TO CURRENT_USER",
]
NO_DECISION = [
    "UPDATE adjourn.ask SET state = 'approved', settled_at = 1 WHERE state = 'pending'",
    "UPDATE adjourn.ask SET state = 'approved', settled_at = 1, settled_by = 'db:' || session_user WHERE state = 'pending'",
    "INSERT INTO adjourn.ask VALUES (9, '', 'approved', 'approval', 1, 1, NULL, 1, NULL, 1, 'db:x', NULL, NULL, '')",
    "UPDATE adjourn.call SET state = 'approved' WHERE state = 'pending'",
    "UPDATE adjourn.call SET state = 'executing', claimed_by = 'me' WHERE state = 'pending'",
    "UPDATE adjourn.call SET approved_by = 'db:' || session_user",
    "SET ROLE adjourn_approver",
]
FORBIDDEN = {
    "agent": [
        *NO_DECISION,
        "UPDATE adjourn.ask SET body = 'x' WHERE state = 'pending'",
        "UPDATE adjourn.ask SET snoozed_until = 99999999999999 WHERE state = 'pending'",
        "UPDATE adjourn.call SET body = 'x'",
        "UPDATE adjourn.call SET state = 'done' WHERE state = 'executing'",
        "UPDATE adjourn.call SET state = 'claimed', claimed_by = 'me' WHERE state = 'approved'",
        "UPDATE adjourn.call_body SET body = 'x'",
        "INSERT INTO adjourn.call SELECT no + 9, 'approved', 1, digest FROM adjourn.call WHERE state = 'executing'",
        "INSERT INTO adjourn.call SELECT no + 9, 'pending', 1, digest, NULL, 'policy' FROM adjourn.call WHERE state = 'done'",
        "INSERT INTO adjourn.call SELECT no + 9, 'pending', 1, digest FROM adjourn.call WHERE state = 'pending'",
        "UPDATE adjourn.task SET state = 'queued', next_call = 2",
        "UPDATE adjourn.task SET state = 'succeeded' WHERE state = 'running'",
        "UPDATE adjourn.task SET head = 'x' WHERE state = 'waiting'",
        "UPDATE adjourn.run SET state = 'succeeded'",
        "INSERT INTO adjourn.message VALUES (1, 'x')",
        "INSERT INTO adjourn.document VALUES (1, 'result:tc_1', 'x')",
        "INSERT INTO adjourn.document VALUES (1, 'signed:1', 'x')",
        "INSERT INTO adjourn.document SELECT no, 'saved', 'x' FROM adjourn.task WHERE state = 'waiting'",
        "INSERT INTO adjourn.turn SELECT nextval('adjourn.turn_no_seq'), no << 20, 'x', 'x', 'x', false FROM adjourn.task",
        "INSERT INTO adjourn.shared_document VALUES ('policy:1', 'x')",
        "INSERT INTO adjourn.supervisor VALUES ('x', 'x', 'x', 'x', now())",
        "SELECT adjourn.made_queue('theirs')",
        "SELECT adjourn.take_next('default', 'me', 30)",
        "SELECT adjourn.wrest(no, false) FROM adjourn.task WHERE state = 'running'",
        "SELECT adjourn.enqueue(no) FROM adjourn.task WHERE state = 'queued'",
        "SELECT adjourn.retire(no) FROM adjourn.task WHERE state = 'queued'",
        "SELECT * FROM absurd.spawn_task('adjourn_default', 'run', '{\"task\": 1}')",
        "SELECT * FROM absurd.claim_task('adjourn_default', 'me', 30, 1)",
        "SET ROLE adjourn_worker",
    ],
    "approver": [
        "INSERT INTO adjourn.task SELECT * FROM adjourn.task",
        "UPDATE adjourn.task_spec SET body = 'x'",
        "UPDATE adjourn.call SET state = 'approved', approved_by = 'policy', digest = 'x' WHERE state = 'done'",
        "UPDATE adjourn.run SET state = 'succeeded'",
        "UPDATE adjourn.call SET state = 'claimed', claimed_by = 'me' WHERE state = 'approved'",
        "UPDATE adjourn.call SET claimed_by = 'me' WHERE state = 'executing'",
        "UPDATE adjourn.call SET state = 'done' WHERE state = 'executing'",
        "UPDATE adjourn.call SET state = 'approved', approved_by = 'db:bert' WHERE state = 'pending'",
        "SELECT * FROM absurd.claim_task('adjourn_default', 'me', 30, 1)",
        "SELECT adjourn.take_next('default', 'me', 30)",
        "SET ROLE adjourn_worker",
    ],
    "worker": [
        *NO_DECISION,
        "INSERT INTO adjourn.call SELECT no + 9, 'approved', 1, digest, NULL, 'db:bert' FROM adjourn.call LIMIT 1",
        "INSERT INTO adjourn.call SELECT no + 9, 'approved', 1, digest, NULL, 'key:bert' FROM adjourn.call LIMIT 1",
    ],
}


@pytest.mark.parametrize("role", FORBIDDEN)
def test_whoever_speaks_sql_is_held_to_its_role_as_well(
    office: Office, as_role: Roles, role: str
) -> None:
    _, decided = office.waiting()
    office.reply(decided, Verb.APPROVE)
    office.waiting()
    office.start()
    office.ask(office.begin(office.start()).run)
    with psycopg.connect(as_role(role), autocommit=True) as connection:
        for statement in [*NOBODYS, *FORBIDDEN[role]]:
            with pytest.raises(errors.InsufficientPrivilege):
                pytest.fail(
                    f"{role}: {statement}: {connection.execute(statement.encode()).rowcount}"
                )


@pytest.mark.parametrize("role", ["approver", "worker"])
def test_what_a_person_rejected_stays_rejected(
    offices: dict[str, Office], as_role: Roles, role: str
) -> None:
    task, ask = offices["worker"].waiting()
    offices["approver"].reply(ask, Verb.REJECT)
    with psycopg.connect(as_role(f"second_{role}", of=role), autocommit=True) as login:
        for approver in (None, f"db:{login.info.user}", "policy"):
            statement = "UPDATE adjourn.call SET state = 'approved', approved_by = %s WHERE state = 'rejected'"
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(statement, [approver])
    assert offices["worker"].task(task.id).state is TaskState.FAILED


def test_only_an_approver_says_what_became_of_a_call_that_may_have_run(
    offices: dict[str, Office], as_role: Roles
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    task = worker.lost()
    with psycopg.connect(as_role("second_worker", of="worker"), autocommit=True) as login:
        for state in ("approved", "done", "failed", "withdrawn"):
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(
                    "UPDATE adjourn.call SET state = %s WHERE state = 'uncertain'", [state]
                )
    assert (
        approver.controller.tasks.settle(task.id, 1, Verdict.RUN_AGAIN, by=approver.me).state
        is TaskState.QUEUED
    )
    assert worker.run(worker.task(task.id)).state is TaskState.SUCCEEDED


def test_an_approver_puts_other_bytes_only_into_what_it_approves_itself(
    offices: dict[str, Office], as_role: Roles
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    task = worker.start(argv=("echo", "hello"), pause_on_approval=True)
    ask = worker.open_ask(task)
    edited = msgspec.json.encode({"argv": ["echo", "bye"], "cwd": task.spec.workspace})
    approver.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.APPROVE, edited=edited)], by=approver.me
    )
    with psycopg.connect(as_role("second_approver", of="approver")) as bert:
        for statement in (
            "UPDATE adjourn.call SET digest = sha256('x')",
            "UPDATE adjourn.call SET digest = sha256('x'), approved_by = 'db:' || session_user",
            "UPDATE adjourn.call_body SET body = 'x'",
            "UPDATE adjourn.call SET version = 9; UPDATE adjourn.task_spec SET body = 'x'; SET CONSTRAINTS ALL IMMEDIATE",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                bert.execute(statement.encode())
            bert.rollback()
    assert worker.begin(worker.task(task.id)).call.approved_by == approver.me.name
    assert worker.task(task.id).spec.argv == ("echo", "bye")


def test_an_approver_approves_in_its_own_name_also_where_another_approved_before(
    offices: dict[str, Office], as_role: Roles
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    task = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(task), Verb.APPROVE)
    run = worker.begin(worker.task(task.id)).run
    deploy = Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    assert offices["agent"].controller.asks.propose(run.id, deploy)[1].state is CallState.PENDING
    with psycopg.connect(as_role("second_approver", of="approver"), autocommit=True) as bert:
        statement = (
            "UPDATE adjourn.call SET state = 'approved', approved_by = %s WHERE state = 'pending'"
        )
        with pytest.raises(errors.InsufficientPrivilege):
            bert.execute(statement, [approver.me.name])


def test_what_was_asked_counts_whatever_is_written_beside_it(
    office: Office, as_role: Roles
) -> None:
    """An approver may write the reply of an ask.

    The terms on which an approval counts are not there.
    """
    _, ask = office.waiting()
    forged = msgspec.msgpack.encode(
        {"gate": True, "terms": Terms(signed=True), "prompt": "Nothing special", "reply": None}
    )
    statement = "SELECT adjourn.write_ask(no, state, call, expires_at, NULL, NULL, NULL, NULL, given, remind_at, %s) FROM adjourn.ask"
    with psycopg.connect(as_role("approver"), autocommit=True) as anna:
        anna.execute(f"{statement} WHERE state = 'pending'".encode(), [forged])
    with office.controller.store.read() as view:
        assert view.ask(ask.id) == ask


TOLD_BY = {
    "ask_approved": {"approver"},
    "ask_rejected": {"approver"},
    "ask_settled": {"approver"},
    "call_edited": {"approver"},
    "ask_answered": {"approver", "worker"},
    "call_settled": {"approver"},
    "call_executing": {"agent", "worker"},
    "call_closed": {"agent", "worker"},
    "call_let_through": {"worker"},
    "call_found": {"worker"},
    "call_released": {"worker"},
    "call_lost": {"worker"},
    "call_not_made": {"worker"},
    "start_refused": {"worker"},
    "program_executed": {"worker"},
    "files_changed": {"worker"},
    "task_created": {"worker"},
    "task_canceled": {"approver", "worker"},
    "ask_opened": {"agent", "approver", "worker"},
}
NAMED_BY = {
    "key:anna": {"approver"},
    "webhook:chat": {"approver"},
    "passkey:anna": {"approver"},
    "web:anna": set(),
    "link:mail": set(),
    "file:uid:0": {"approver", "worker"},
    "adjourn": {"agent", "approver", "worker"},
}
SEAL = b"""
SELECT adjourn.seal_events(
    (SELECT max(version) FROM adjourn.schema_version),
    ARRAY[(SELECT no FROM adjourn.task ORDER BY state = 'running' DESC LIMIT 1)], ARRAY[%b::bytea], ARRAY['\\x00'::bytea]
)
"""


@pytest.mark.parametrize("role", FORBIDDEN)
def test_the_trail_tells_of_decisions_only_what_those_say_who_may_decide(
    office: Office, as_role: Roles, role: str
) -> None:
    task, _ = office.waiting()
    store = office.controller.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(as_role(role), autocommit=True) as login:
        name = f"db:{login.info.user}"
        if role == "agent":  # it tells of its own task, while that runs
            task = office.begin(office.start()).task
            login.execute("SELECT set_config('adjourn.key', %s, false)", [store.run_key(task.id)])
        told = {(kind, name): may for kind, may in TOLD_BY.items()} | {
            ("ask_opened", by): may for by, may in NAMED_BY.items()
        }
        told |= {("ask_approved", by): set() for by in ("adjourn", "policy", "file:uid:0")}
        for (kind, by), may in told.items():
            body = event_body(Event(task_id=task.id, kind=kind, by=by, at=office.now))
            with (
                contextlib.nullcontext()
                if role in may
                else pytest.raises(errors.InsufficientPrivilege)
            ):
                login.execute(SEAL % f"'\\x{body.hex()}'".encode())


def test_a_worker_forgets_what_has_ended_and_nothing_else(offices: dict[str, Office]) -> None:
    worker = offices["worker"]
    ended, (waiting, _) = worker.run(worker.start()), worker.waiting()
    worker.controller.tasks.forget(ended.id, by=worker.me)
    with pytest.raises(NotFound):
        worker.task(ended.id)
    assert worker.task(waiting.id).state is TaskState.WAITING


def test_a_call_that_goes_on_keeps_the_name_of_whoever_let_it_through(
    offices: dict[str, Office], database: str
) -> None:
    """A worker writes that name then, and it is not the worker's."""
    worker, approver = offices["worker"], offices["approver"]
    task = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(task), Verb.APPROVE)
    run = worker.begin(worker.task(task.id)).run
    question = worker.ask(run)
    worker.controller.runs.finish(run, ASKS_10)
    worker.reply(question, Verb.ANSWER, "eu")
    assert worker.run(worker.task(task.id)).state is TaskState.SUCCEEDED
    with psycopg.connect(database) as owner:
        assert (
            owner.execute("SELECT approved_by FROM adjourn.call").fetchall()
            == [(approver.me.name,)] * 2
        )


def test_the_roles_are_as_good_when_an_administrator_makes_them_for_the_owner(
    postgres: Server,
    as_role: Roles,  # noqa: ARG001 -- a fixture
) -> None:
    """A queue that comes later is the owner's, and so is the right to do everything."""
    postgres.make_login("adj")
    try:
        with postgres.empty_database() as url:
            name = str(conninfo_to_dict(url)["dbname"])
            postgres.do(f"ALTER DATABASE {name} OWNER TO adj")
            owner, administrator = PostgresStore(login_at(url, "adj")), PostgresStore(url)
            _, ask = office_of(owner).waiting()
            administrator.make_roles()
            postgres.make_login("worker_of_adj", "IN ROLE adjourn_worker")
            worker = PostgresStore(login_at(url, "worker_of_adj"))
            office_of(worker).run(office_of(worker).start(pool="later"))
            assert office_of(owner).reply(ask, Verb.APPROVE).state is TaskState.QUEUED
            for store in (owner, administrator, worker):
                store.close()
    finally:
        postgres.do("DROP ROLE IF EXISTS worker_of_adj")
        postgres.do("DROP ROLE adj")


FORGERIES = {
    "the name of another login": "'db:bert', NULL",
    "a user of some machine": "'uid:0', NULL",
    "nobody": "NULL, NULL",
    "the program itself": "'adjourn', NULL",
    "the policy": "'policy', NULL",
    "a key without its signature": "'key:bert', 'L0'",
    "a level that a webhook has not": "'webhook:chat', 'L1'",
    "somebody whom only a server logs in": "'web:bert', 'L0'",
    "a passkey without its signature": "'passkey:bert', 'L0'",
    "its own, and the trail does not tell": "'db:' || session_user, 'L1'",
}
APPROVE = """
SELECT adjourn.write_ask(
    no, 'approved', call, expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, {}, NULL, given, remind_at, body
) FROM adjourn.ask WHERE state = 'pending'
"""


def test_an_approver_who_speaks_sql_decides_in_its_own_name_only(
    office: Office, as_role: Roles
) -> None:
    task, _ = office.waiting()
    with psycopg.connect(as_role("approver"), autocommit=True) as anna:
        for forgery in FORGERIES.values():
            with pytest.raises(errors.InsufficientPrivilege):
                anna.execute(APPROVE.format(forgery).encode())
        assert office.task(task.id).state is TaskState.WAITING


def test_nobody_tells_the_trail_what_another_login_did(office: Office, as_role: Roles) -> None:
    """Nor who started a task: what a decision is worth hangs on that."""
    task, _ = office.waiting()
    bodies = {
        by: event_body(Event(task_id=task.id, kind="approved", by=by, at=1))
        for by in ("db:bert", "db:" + "b" * 60, "uid:0")
    }
    whole = bodies["db:bert"]
    spelt_otherwise = [
        b"\xdc\x00\x04" + whole[1:],
        whole.replace(b"\xa7db:bert", b"\xda\x00\x07db:bert"),
        whole[:3],
        b"",
    ]
    for role in ("agent", "approver", "worker"):
        with psycopg.connect(as_role(role), autocommit=True) as login:
            for body in [*bodies.values(), *spelt_otherwise]:
                with pytest.raises(psycopg.DatabaseError):
                    login.execute(SEAL % f"'\\x{body.hex()}'".encode())
    assert {event.by for event in office.events(task)} == {"adjourn", office.me.name}


def test_a_guard_calls_no_function_of_those_whom_it_guards(
    office: Office, postgres: Server, database: str, as_role: Roles
) -> None:
    task, _ = office.waiting()
    url = as_role("agent")
    postgres.do(
        "CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO PUBLIC",
        str(conninfo_to_dict(database)["dbname"]),
    )
    with psycopg.connect(url, autocommit=True) as agent:
        agent.execute(
            "CREATE FUNCTION theirs.pg_has_role(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
        agent.execute("SET search_path = theirs, pg_catalog")
        with pytest.raises(errors.InsufficientPrivilege):
            agent.execute(APPROVE.format("'db:' || session_user, NULL").encode())
    postgres.do("DROP SCHEMA theirs CASCADE", str(conninfo_to_dict(database)["dbname"]))
    assert office.task(task.id).state is TaskState.WAITING

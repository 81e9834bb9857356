"""What logins of a shared store have tried with SQL of their own, and must not achieve."""

import os
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from adjourn.core.ask import Verb
from adjourn.core.call import Command, command_body
from adjourn.core.errors import StoreProblem
from adjourn.core.states import CALL_TRANSITIONS, TRANSITIONS, TaskState
from adjourn.core.trail.events import Event
from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.shapes import event_body
from tests.contract.office import Office
from tests.postgres import Server
from tests.shared.conftest import Roles, as_role, login_at  # noqa: F401 -- a fixture
from tests.shared.desk import desk
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time
OTHER_BYTES = command_body(Command(argv=("touch", "/tmp/never"), cwd="/"))
ADD = "SELECT adjourn.add_call((%s::bigint << 20) + 90, 'approved', 1, sha256(%s), NULL, 'db:' || session_user, NULL, '\\x80', %s)"
QUEUE = """
SELECT adjourn.write_task(no, 'queued', version + 1, slot, {call}, NULL, body, NULL, NULL, NULL) FROM adjourn.task WHERE id = %s
"""
TELL = f"SELECT adjourn.seal_events({SCHEMA}, ARRAY[%s::bigint], ARRAY[%s::bytea], ARRAY['\\x00'::bytea])"

Login = psycopg.Connection[tuple[object, ...]]


def number_of(login: Login, task: str) -> object:
    return login.execute("SELECT no FROM adjourn.task WHERE id = %s", [task]).fetchall()[0][0]


@pytest.fixture
def anna(as_role: Roles) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("anna", of="approver"), autocommit=True) as login:
        yield login


@pytest.fixture
def ci(as_role: Roles) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("ci", of="worker"), autocommit=True) as login:
        yield login


@pytest.fixture
def bot(as_role: Roles) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("bot", of="agent"), autocommit=True) as login:
        yield login


def test_an_approver_puts_no_bytes_into_a_task_that_has_ended(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    anna: Login,
) -> None:
    worker = offices["worker"]
    ended = worker.run(worker.start())
    no = number_of(anna, ended.id)
    for statement, values in (
        (ADD, [no, OTHER_BYTES, OTHER_BYTES]),
        (QUEUE.format(call=1), [ended.id]),
        (QUEUE.format(call=90), [ended.id]),
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            anna.execute(statement.encode(), values)
    assert worker.task(ended.id).state is TaskState.SUCCEEDED


def test_an_approver_puts_no_other_bytes_into_a_task_that_waits(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    anna: Login,
) -> None:
    task, _ = offices["worker"].waiting()
    with pytest.raises(errors.InsufficientPrivilege, match="its own command"):
        anna.execute(ADD.encode(), [number_of(anna, task.id), OTHER_BYTES, OTHER_BYTES])


def test_an_approver_lets_no_call_start_without_a_decision(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    anna: Login,
) -> None:
    """`update call set state = 'approved'.

    Update task set state = 'queued'`, by the functions that there are.
    """
    worker = offices["worker"]
    task = worker.start(pause_on_approval=True)
    approve = """
    SELECT adjourn.write_call(no, 'approved', version + 1, digest, NULL, 'db:' || session_user, label, body)
    FROM adjourn.call WHERE state = 'pending'
    """
    queue = QUEUE.format(call=1).replace("%s", f"'{task.id}'")
    with pytest.raises(errors.InsufficientPrivilege, match="without a decision on its ask"):
        anna.execute(f"{approve}; {queue}".encode())
    settle = """
    SELECT adjourn.write_ask(
        no, 'approved', call, expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 'db:' || session_user, 'L1',
        NULL, given, remind_at, body
    ) FROM adjourn.ask WHERE state = 'pending'
    """
    with pytest.raises(errors.InsufficientPrivilege, match="without an event of the trail"):
        anna.execute(f"{approve}; {settle}; {queue}".encode())
    assert worker.task(task.id).state is TaskState.WAITING


def test_a_worker_does_not_revive_what_was_rejected_by_ending_its_task(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    ci: Login,
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    task = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(task), Verb.REJECT)
    for statement in (
        "DELETE FROM adjourn.call",
        "UPDATE adjourn.call SET state = 'approved'",
        "SELECT adjourn.write_call(no, 'approved', 9, digest, NULL, approved_by, label, body) FROM adjourn.call",
        "SELECT adjourn.write_call(no, 'pending', 9, digest, NULL, approved_by, label, body) FROM adjourn.call",
        "SELECT adjourn.write_ask(no, 'pending', call, NULL, NULL, NULL, NULL, NULL, given, remind_at, body) FROM adjourn.ask",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            ci.execute(statement)
    # All of it, or nothing
    worker.controller.tasks.forget(task.id, by=worker.me)
    with pytest.raises(errors.InsufficientPrivilege):
        ci.execute(ADD.encode(), [1, OTHER_BYTES, OTHER_BYTES])


FORGET = {
    "no event": ("'{}'", "'{}'"),
    "events without links": ("array_agg(event.no)", "array_agg(NULL::bytea)"),
    "links of others": ("array_agg(event.no)", "array_agg(sha256(event.seal))"),
    "all events but one": (
        "(array_agg(event.no ORDER BY event.no))[2:]",
        "(array_agg(sha256(event.seal) ORDER BY event.no))[2:]",
    ),
}


@pytest.mark.parametrize("attempt", FORGET)
def test_a_worker_forgets_no_task_without_the_links_of_its_events(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    ci: Login,
    attempt: str,
) -> None:
    """What is pruned still closes the trail: the database compares each link with its seal."""
    worker = offices["worker"]
    task = worker.run(worker.start())
    places, links = FORGET[attempt]
    statement = (
        f"SELECT adjourn.forget_task(task.no, {places}, {links}) FROM adjourn.task "  # noqa: S608 -- our own words
        "JOIN adjourn.event ON event.task = task.no WHERE task.id = %s GROUP BY task.no"
    )
    with pytest.raises(errors.InsufficientPrivilege, match="may not forget"):
        ci.execute(statement.encode(), [task.id])
    assert worker.task(task.id) == task
    worker.controller.tasks.forget(task.id, by=worker.me)


def test_an_approver_changes_nothing_that_a_running_task_would_go_on_with(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    anna: Login,
) -> None:
    worker = offices["worker"]
    task = worker.begin(worker.start()).run.task_id
    move = """
    SELECT adjourn.write_task(
        no, state, version + 1, slot, %s, wish, body, engine_task, engine_run, NULL
    ) FROM adjourn.task WHERE id = %s
    """
    for number in (7, None):
        with pytest.raises(errors.InsufficientPrivilege, match="may decide, never start"):
            anna.execute(move, [number, task])


ASK = """
SELECT adjourn.add_ask(
    (no << 20) + 1, 'theirs', 'pending', 'question', 1, moment, NULL, NULL, moment + %(after)s, NULL, NULL, NULL, NULL,
    '[]', NULL, 1, '\\x80', '\\x80'
) FROM adjourn.task, (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS moment) AS clock
WHERE id = %(task)s
"""


@pytest.mark.parametrize("after", [-1, -(10**9), 367 * 86_400_000, 2**60])
def test_an_agent_keeps_no_ask_of_its_own_open_for_no_time_or_for_ever(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    bot: Login,
    after: int,
) -> None:
    worker = offices["worker"]
    run = worker.begin(worker.start()).run
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    bot.execute("SELECT set_config('adjourn.key', %s, false)", [store.run_key(run.task_id)])
    with pytest.raises(errors.InsufficientPrivilege, match="open for no time"):
        bot.execute(ASK, {"task": run.task_id, "after": after})


def test_an_agent_writes_into_no_other_task_and_into_no_trail_of_it(
    offices: dict[str, Office],  # noqa: F811 -- a fixture
    bot: Login,
) -> None:
    worker = offices["worker"]
    own, other = worker.begin(worker.start()).run, worker.begin(worker.start()).run
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    key, name = store.run_key(own.task_id), f"db:{bot.info.user}"
    body = event_body(Event(task_id=own.task_id, kind="call_closed", by=name, at=1))
    attempts = (
        (TELL, lambda task: [number_of(bot, task), body]),
        ("SELECT adjourn.add_document(%s, 'saved', 'x')", lambda task: [number_of(bot, task)]),
        (
            "SELECT adjourn.add_turn(%s::bigint << 20, 'x', 'x', 'x', false)",
            lambda task: [number_of(bot, task)],
        ),
        ("SELECT adjourn.write_head(%s, 'x')", lambda task: [number_of(bot, task)]),
        (
            "SELECT adjourn.lock_families(ARRAY(SELECT family FROM adjourn.task WHERE id = %s))",
            lambda task: [task],
        ),
    )
    for shown in (None, "0" * 64, key):
        if shown:
            bot.execute("SELECT set_config('adjourn.key', %s, false)", [shown])
        for statement, values in attempts:
            with pytest.raises(errors.InsufficientPrivilege):
                bot.execute(statement.encode(), values(other.task_id))
    for statement, values in attempts:
        bot.execute(statement.encode(), values(own.task_id))
    for statement in ("SELECT adjourn.run_key('x')", "SELECT * FROM adjourn.secret"):
        with pytest.raises(errors.InsufficientPrivilege):
            bot.execute(statement)


FREEZING = (
    "SELECT pg_advisory_lock(1633970798), pg_advisory_lock(1633970797), pg_advisory_lock(1633970799)",
    "SELECT pg_advisory_lock(1633970800, number) FROM generate_series(-100, 100) AS number",
    "LOCK TABLE adjourn.task IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE adjourn.event IN ROW EXCLUSIVE MODE",
    "LOCK TABLE absurd.r_adjourn_default IN ACCESS EXCLUSIVE MODE",
    "SELECT 1 FROM adjourn.family FOR UPDATE",
    "SELECT 1 FROM adjourn.task FOR KEY SHARE",
    "SELECT 1 FROM adjourn.lock FOR UPDATE",
    "SELECT adjourn.wait_for('trail')",
)


@pytest.mark.parametrize("role", ["agent", "outsider"])
def test_a_login_that_runs_and_decides_nothing_freezes_nobody(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    role: str,
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    _, ask = worker.waiting()
    if role == "agent":
        url = as_role("bot", of="agent")
    else:
        postgres.make_login(f"freezing_{os.getpid()}")
        url = login_at(database, f"freezing_{os.getpid()}")
    try:
        with psycopg.connect(url, autocommit=True) as hostile:
            for statement in FREEZING:
                hostile.execute("BEGIN")
                try:
                    hostile.execute(statement)
                except errors.InsufficientPrivilege:
                    hostile.execute("ROLLBACK")
            for store in (worker.controller.store, approver.controller.store):
                assert isinstance(store, PostgresStore)
                store._db.all(b"SET statement_timeout = '5s'")
            assert approver.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
            assert worker.run(worker.task(ask.task_id)).state is TaskState.SUCCEEDED
            assert worker.start(pool="another").state is TaskState.QUEUED
    finally:
        if role == "outsider":
            postgres.do(f"DROP ROLE freezing_{os.getpid()}")


@pytest.mark.parametrize("then", [None, b"SELECT pg_sleep(60)"])
def test_an_agent_that_holds_the_trail_is_cut_off(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    then: bytes | None,
) -> None:
    """Its own task lets it take the lock that everybody waits for; it does not keep it."""
    worker = offices["worker"]
    run = worker.begin(worker.start()).run
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    bot = psycopg.connect(as_role("bot", of="agent"), autocommit=True)
    try:
        body = event_body(
            Event(task_id=run.task_id, kind="call_closed", by=f"db:{bot.info.user}", at=1)
        )
        bot.execute("SELECT set_config('adjourn.key', %s, false)", [store.run_key(run.task_id)])
        bot.execute("BEGIN")
        bot.execute(TELL.encode(), [number_of(bot, run.task_id), body])
        if then:
            bot.pgconn.send_query(then)
            bot.pgconn.flush()
        begun = time.monotonic()
        worker.start()
        assert 4 < time.monotonic() - begun < 20
    finally:
        bot.close()


def test_nobody_weakens_the_policy_that_a_task_began_under(anna: Login, ci: Login) -> None:
    for login in (anna, ci):
        with pytest.raises(errors.InsufficientPrivilege):
            login.execute("SELECT adjourn.keep_shared_document('policy:' || repeat('0', 64), 'x')")


@pytest.mark.usefixtures("as_role")  # the roles are there, and go again
def test_the_database_knows_the_same_moves_as_the_program(database: str) -> None:
    store = PostgresStore(database)
    found = store._db.all(
        b"SELECT proname::text, prosrc FROM pg_proc WHERE proname IN ('guard_task', 'require_true_move')"
    )
    source = {str(name): str(text) for name, text in found}
    store.close()
    tasks = {
        (was.value, after.value) for (was, _), after in TRANSITIONS.items() if was is not after
    }
    calls = {(was.value, after.value) for (was, _), after in CALL_TRANSITIONS.items()} | {
        ("approved", "executing")
    }
    for moves, text in ((tasks, source["guard_task"]), (calls, source["require_true_move"])):
        listed = text[text.index("NOT IN (") :].partition(") THEN")[0]
        words = [word.strip(" ('\n)") for word in listed.removeprefix("NOT IN (").split(",")]
        assert set(zip(words[::2], words[1::2], strict=True)) == moves


# --- the same attacks by statements on the tables, as they were first seen ------------------------

BY_TABLES = {
    "an approver puts bytes into a task that has ended": (
        "approver",
        """
        INSERT INTO adjourn.call (no, state, version, digest, approved_by, body)
        SELECT (no << 20) + 90, 'approved', 1, sha256(%(bytes)s), 'db:' || session_user, '\\x80'
        FROM adjourn.task WHERE id = %(ended)s
        """,
        """
        INSERT INTO adjourn.call_body (no, body)
        SELECT (no << 20) + 90, %(bytes)s FROM adjourn.task WHERE id = %(ended)s
        """,
        "UPDATE adjourn.task SET state = 'queued', next_call = 90 WHERE id = %(ended)s",
    ),
    "a worker revives what was rejected by ending its task": (
        "worker",
        "UPDATE adjourn.task SET state = 'canceled' WHERE id = %(rejected)s",
        "DELETE FROM adjourn.call WHERE state = 'rejected'",
        """
        INSERT INTO adjourn.call (no, state, version, digest, approved_by, body)
        SELECT (no << 20) + 1, 'approved', 1, sha256(%(bytes)s), 'db:' || session_user, '\\x80'
        FROM adjourn.task WHERE id = %(rejected)s
        """,
    ),
    "an agent writes into another task's rows": (
        "agent",
        "INSERT INTO adjourn.document (task, name, body) SELECT no, 'saved', 'x' FROM adjourn.task WHERE id = %(running)s",
    ),
    "an agent writes into another task's trail": (
        "agent",
        """
        SELECT adjourn.seal_events(%(schema)s, ARRAY[no], ARRAY[%(event)s::bytea], ARRAY['\\x00'::bytea])
        FROM adjourn.task WHERE id = %(running)s
        """,
    ),
    "an agent locks everybody's tasks": ("agent", "SELECT 1 FROM adjourn.family FOR UPDATE"),
    "a worker approves what was asked": (
        "worker",
        "UPDATE adjourn.call SET state = 'approved', approved_by = 'db:' || session_user WHERE state = 'pending'",
    ),
    "an approver queues what nobody decided": (
        "approver",
        "UPDATE adjourn.call SET state = 'approved', approved_by = 'db:' || session_user WHERE state = 'pending'",
        "UPDATE adjourn.task SET state = 'queued', next_call = 1 WHERE id = %(waiting)s",
    ),
}


@pytest.mark.parametrize("attack", BY_TABLES)
def test_no_attack_by_statements_on_tables_goes_through(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    attack: str,
) -> None:
    """All of its statements in one transaction: it is refused at one of them, or at the commit."""
    worker, approver = offices["worker"], offices["approver"]
    role, *statements = BY_TABLES[attack]
    ended = worker.run(worker.start())
    rejected = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(rejected), Verb.REJECT)
    waiting = worker.start(pause_on_approval=True)
    running = worker.begin(worker.start()).run
    with psycopg.connect(as_role("hostile", of=role), autocommit=True) as hostile:
        ((schema,),) = hostile.execute("SELECT max(version) FROM adjourn.schema_version").fetchall()
        event = Event(
            task_id=running.task_id, kind="call_closed", by=f"db:{hostile.info.user}", at=1
        )
        values = {
            "bytes": OTHER_BYTES,
            "ended": ended.id,
            "rejected": rejected.id,
            "waiting": waiting.id,
            "running": running.task_id,
            "schema": schema,
            "event": event_body(event),
        }
        with pytest.raises(errors.InsufficientPrivilege):
            attempt(hostile, statements, values)


def attempt(hostile: Login, statements: list[str], values: dict[str, object]) -> None:
    """Run statements in one transaction."""
    with hostile.transaction():
        for statement in statements:
            hostile.execute(statement.encode(), values)


def test_who_holds_the_trail_is_named_where_the_owner_may_end_no_connection(
    postgres: Server,
) -> None:
    """The owner of the schema is no superuser and has no pg_signal_backend.

    The error says who it is and what helps.
    """
    names = {role: f"{role}_{os.getpid()}" for role in ("plain", "quiet")}
    for name in names.values():
        postgres.make_login(name)
    for role in ("agent", "approver", "worker"):
        postgres.do(
            f"DO $$ BEGIN CREATE ROLE adjourn_{role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        postgres.do(f"GRANT adjourn_{role} TO {names['plain']} WITH ADMIN OPTION")
    postgres.do(f"GRANT adjourn_worker TO {names['quiet']}")
    try:
        with postgres.empty_database() as url:
            postgres.do(
                f"ALTER DATABASE {conninfo_to_dict(url)['dbname']} OWNER TO {names['plain']}"
            )
            owner = PostgresStore(login_at(url, names["plain"]))
            owner.make_roles()
            office = desk(owner)
            task = office.start()
            with psycopg.connect(login_at(url, names["quiet"]), autocommit=True) as quiet:
                body = event_body(
                    Event(task_id=task.id, kind="task_note", by=f"db:{names['quiet']}", at=1)
                )
                quiet.execute("BEGIN")
                quiet.execute(TELL.encode(), [number_of(quiet, task.id), body])
                with pytest.raises(StoreProblem, match=f"{names['quiet']} keeps everybody waiting"):
                    office.start()
                quiet.execute("ROLLBACK")
            assert office.start().state is TaskState.QUEUED
            owner.close()
    finally:
        for name in names.values():
            postgres.do(f"DROP OWNED BY {name}")
            postgres.do(f"DROP ROLE {name}")

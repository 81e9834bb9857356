"""What a login does to its own session must change nothing of what the functions of the owner check."""

from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest
from psycopg import errors

from adjourn.core.ask import Verb
from adjourn.core.states import TaskState
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import DONE, Office
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_roles import APPROVE, offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time

Login = psycopg.Connection[tuple[object, ...]]
SHADOWS = (
    *(
        f"CREATE TEMP TABLE {name} AS TABLE adjourn.{name}"
        for name in (
            "task",
            "ask",
            "call",
            "call_body",
            "event",
            "family",
            "document",
            "schema_version",
        )
    ),
    "CREATE TEMP TABLE secret (body bytea)",
    "CREATE TEMP TABLE pg_class (oid oid, relowner oid)",
    "CREATE FUNCTION pg_temp.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION pg_temp.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$SELECT '\\x00'::bytea$$",
    "CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT '-infinity'::timestamptz$$",
    "CREATE FUNCTION pg_temp.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR pg_temp.= (FUNCTION = pg_temp.same, LEFTARG = text, RIGHTARG = text)",
    "CREATE OPERATOR pg_temp.~ (FUNCTION = pg_temp.same, LEFTARG = text, RIGHTARG = text)",
    "CREATE DOMAIN pg_temp.text AS pg_catalog.text",
    "CREATE CAST (text AS boolean) WITH FUNCTION pg_temp.truth(text) AS IMPLICIT",
)
SETTINGS = (
    "SET search_path = pg_temp, adjourn, absurd, pg_catalog",
    "SET search_path = ''",
    "SET standard_conforming_strings = off",
    "SET transform_null_equals = on",
    "SET check_function_bodies = off",
    "SET row_security = off",
    "SET bytea_output = escape",
    "SET TimeZone = 'Pacific/Kiritimati'",
    "SET adjourn.key = ''",
)


START = """
{}SELECT adjourn.write_task(
    no, 'running', version + 1, slot, next_call, wish, body, engine_task, engine_run, NULL
) FROM adjourn.task WHERE state = 'queued' AND no >= {}
"""
OTHERS = {
    "agent": ("approver", "worker"),
    "approver": ("agent", "worker"),
    "worker": ("agent", "approver"),
}


@pytest.mark.parametrize("role", OTHERS)
def test_no_login_becomes_another_role_or_touches_what_guards_the_tables(
    as_role: Roles,  # noqa: F811 -- the fixture
    role: str,
) -> None:
    with psycopg.connect(as_role("hostile", of=role), autocommit=True) as login:
        for other in OTHERS[role]:
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(f"SET ROLE adjourn_{other}".encode())
        login.execute(
            "CREATE FUNCTION pg_temp.theirs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        for statement in REFUSED:
            with pytest.raises((errors.InsufficientPrivilege, errors.InvalidParameterValue)):
                pytest.fail(f"{statement}: {login.execute(statement.encode()).statusmessage}")


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_temporary_object_and_no_setting_lets_an_approver_start_anything(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    setting: str,
) -> None:
    """Neither by prepared statements, tables and functions of its own, nor by the role that it may take."""
    worker = offices["worker"]
    task = worker.start()
    with psycopg.connect(as_role("hostile", of="approver"), autocommit=True) as anna:
        for statement in (*SHADOWS, START.format("PREPARE theirs AS ", "1"), setting):
            with suppress(
                errors.InsufficientPrivilege,
                errors.UndefinedFunction,
                errors.UndefinedObject,
                errors.WrongObjectType,
            ):
                anna.execute(statement.encode())
        for statement in (
            START.format("", "1"),
            "EXECUTE theirs",
            f"SET ROLE adjourn_approver; {START.format('', '1')}",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                anna.execute(statement.encode())
    assert worker.task(task.id) == task


@pytest.mark.parametrize("role", OTHERS)
def test_a_flood_of_notices_and_of_advisory_locks_stops_nobody(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    role: str,
) -> None:
    worker = offices["worker"]
    waiting = worker.start(pause_on_approval=True)
    listener = worker.controller.store.listen()
    with (
        closing(listener),
        psycopg.connect(as_role("hostile", of=role), autocommit=True) as hostile,
    ):
        hostile.execute(
            "SELECT pg_notify('adjourn', n || repeat('x', 7900)) FROM generate_series(1, 3000) AS n"
        )
        hostile.execute(
            "SELECT pg_advisory_lock(n) FROM generate_series(1633970790, 1633970810) AS n"
        )
        listener.drain()
        done = offices["approver"].reply(worker.open_ask(waiting), Verb.APPROVE)
        assert done.state is TaskState.QUEUED
        listener.drain()
        assert worker.run(worker.task(waiting.id)).state is TaskState.SUCCEEDED


@pytest.fixture(params=["agent", "worker"])
def hostile(as_role: Roles, request: pytest.FixtureRequest) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("hostile", of=request.param), autocommit=True) as login:
        yield login


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_temporary_object_and_no_setting_lets_a_login_decide(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    hostile: Login,
    setting: str,
) -> None:
    """Neither tables, functions, operators, types and casts of its own, nor where names are looked for."""
    worker = offices["worker"]
    task = worker.start(pause_on_approval=True)
    for statement in SHADOWS:
        with suppress(
            errors.InsufficientPrivilege,
            errors.UndefinedFunction,
            errors.UndefinedObject,
            errors.WrongObjectType,
        ):
            hostile.execute(statement.encode())
    hostile.execute(setting.encode())
    with pytest.raises(errors.InsufficientPrivilege):
        hostile.execute(APPROVE.format("'db:' || session_user, NULL").encode())
    hostile.execute("SET search_path = pg_catalog")
    assert worker.task(task.id).state is TaskState.WAITING


REFUSED = (
    "SET SESSION AUTHORIZATION adjourn_approver",
    "SET SESSION AUTHORIZATION DEFAULT; SET ROLE pg_write_all_data",
    "SET session_replication_role = replica",
    "SET LOCAL session_replication_role = local",
    "ALTER ROLE adjourn_agent SET search_path = pg_temp",
    "ALTER TABLE adjourn.ask DISABLE TRIGGER ALL",
    "GRANT adjourn_approver TO session_user",
    "SELECT pg_read_file('/etc/hostname')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename != session_user",
    "SET log_statement = 'none'",
    "CREATE TRIGGER theirs BEFORE INSERT ON adjourn.ask FOR EACH ROW EXECUTE FUNCTION pg_temp.theirs()",
    "CREATE RULE theirs AS ON UPDATE TO adjourn.ask DO ALSO NOTHING",
    "CREATE VIEW adjourn.theirs AS SELECT 1",
    "COPY adjourn.ask FROM '/dev/null'",
    "COPY adjourn.ask TO '/dev/null'",
    "COPY adjourn.ask TO PROGRAM 'true'",
    "SELECT lo_import('/etc/hostname')",
    "SELECT lo_export(1, '/tmp/theirs')",
    "CREATE EVENT TRIGGER theirs ON ddl_command_start EXECUTE FUNCTION pg_temp.theirs()",
    "SECURITY LABEL ON TABLE adjourn.ask IS 'x'",
    "COMMENT ON TABLE adjourn.ask IS 'x'",
    "ALTER FUNCTION adjourn.guard_ask() SECURITY INVOKER",
    "CREATE OR REPLACE FUNCTION adjourn.guard_ask() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
)


def test_a_forged_notice_wakes_people_and_does_nothing_more(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    hostile: Login,
) -> None:
    worker = offices["worker"]
    waiting = worker.start(pause_on_approval=True)
    for news in (
        "",
        "x",
        "{",
        "[]",
        '{"default": ["' + waiting.id + '"]}',
        '{"default": [1]}',
        "\u202e" * 100,
        "x" * 7999,
    ):
        hostile.execute("SELECT pg_notify('adjourn', %s)", [news])
    taken = worker.controller.store.next_queued("default", supervisor="anna-0", fits=lambda _: True)
    assert taken is None
    assert worker.task(waiting.id).state is TaskState.WAITING
    assert (
        offices["approver"].reply(worker.open_ask(waiting), Verb.APPROVE).state is TaskState.QUEUED
    )


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_nobody_writes_by_what_was_so_when_its_transaction_began(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    level: str,
) -> None:
    """An agent whose run has ended writes nothing more, however long ago it looked."""
    worker = offices["worker"]
    run = worker.begin(worker.start()).run
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(as_role("bot", of="agent"), autocommit=True) as bot:
        bot.execute("SELECT set_config('adjourn.key', %s, false)", [store.run_key(run.task_id)])
        bot.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
        ((no,),) = bot.execute(
            "SELECT no FROM adjourn.task WHERE id = %s", [run.task_id]
        ).fetchall()
        worker.controller.runs.finish(run, DONE)
        with pytest.raises(errors.InsufficientPrivilege):
            bot.execute("SELECT adjourn.add_document(%s, 'saved', 'late')", [no])
        bot.execute("ROLLBACK")

"""Every statement kind on every table, and every function, as every role.

What is not in these tables is refused.
"""

import contextlib
import os
import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.postgres.store import PostgresStore
from tests.postgres import Server
from tests.shared.conftest import Roles, as_role, login_at  # noqa: F401 -- a fixture
from tests.shared.desk import desk

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time

ROLES = ("agent", "approver", "worker", "outsider")
HIDDEN = {"adjourn.secret", "adjourn.lock"}  # from everybody
STATEMENTS = {
    "select": "SELECT count(*) FROM {table}",
    "copy to": "COPY {table} TO STDOUT",
    "insert": "INSERT INTO {table} SELECT * FROM {table}",
    "insert nothing": "INSERT INTO {table} DEFAULT VALUES",
    "update": "UPDATE {table} SET {column} = {column}",
    "delete": "DELETE FROM {table}",
    "merge": "MERGE INTO {table} USING (VALUES (1)) AS one ON true WHEN MATCHED THEN DELETE",
    "truncate": "TRUNCATE {table} CASCADE",
    "copy from": "COPY {table} FROM STDIN",
    "select for update": "SELECT 1 FROM {table} FOR UPDATE",
    "select for key share": "SELECT 1 FROM {table} FOR KEY SHARE",
    "lock access share": "LOCK TABLE {table} IN ACCESS SHARE MODE",
    "lock row share": "LOCK TABLE {table} IN ROW SHARE MODE",
    "lock row exclusive": "LOCK TABLE {table} IN ROW EXCLUSIVE MODE",
    "lock share": "LOCK TABLE {table} IN SHARE MODE",
    "lock access exclusive": "LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
    "alter": "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "drop": "DROP TABLE {table} CASCADE",
    "index": "CREATE INDEX ON {table} ({column})",
    "analyze": "REINDEX TABLE {table}",
    "rule": "CREATE RULE theirs AS ON INSERT TO {table} DO INSTEAD NOTHING",
    "policy": "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
}
READING = {"select", "copy to", "lock access share"}
"""All that the three roles may do to the tables that are not hidden. The fourth, who has none of them, may do nothing."""

EVERYBODYS = {
    "lock_families",
    "seal_events",
    "write_task",
    "write_head",
    "add_call",
    "write_call",
    "write_ask",
}
EVERYBODYS |= {"add_document", "drop_document", "queue_of", "lease_end", "tasks_named", "field"}
RUNNING = {"add_ask", "add_turn", "close_turn"}
MOVING = {
    "write_spec",
    "write_run",
    "write_call_body",
    "lock_expired_asks",
    "made_queue",
    "lock_shared_document",
}
MOVING |= {"keep_shared_document", "enqueue_adjourn_default", "dequeue_adjourn_default"}
WORKING = {
    "add_task",
    "add_run",
    "guard",
    "add_message",
    "save_outbox",
    "forget_task",
    "appear",
    "leave",
    "clean_up",
    "put_back",
    "lock_asks_to_remind",
}
WORKING |= {
    "wrest",
    "taken",
    "leave_to_others",
    "beat",
    "run_key",
    "require_schema",
    "hold_adjourn_default",
}
WORKING |= {"fence_adjourn_default"}
FUNCTIONS = {
    "agent": EVERYBODYS | RUNNING,
    "approver": EVERYBODYS | MOVING,
    "worker": EVERYBODYS | RUNNING | MOVING | WORKING,
    "outsider": set[str](),
}
ELSEWHERE = {
    "CREATE TABLE adjourn.theirs (no integer)": False,
    "CREATE FUNCTION adjourn.theirs() RETURNS integer LANGUAGE sql AS 'SELECT 1'": False,
    "CREATE TABLE absurd.theirs (no integer)": False,
    "CREATE SCHEMA theirs": False,
    "SELECT nextval('adjourn.task_no_seq')": False,
    "SELECT setval('adjourn.task_no_seq', 1)": False,
    "SET ROLE postgres": False,
    "SET SESSION AUTHORIZATION postgres": False,
    "SET session_replication_role = replica": False,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'": False,
    "ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON TABLES TO PUBLIC": False,
    "SELECT lo_import('/etc/passwd')": False,
    "COPY (SELECT 1) TO PROGRAM 'true'": False,
    # What the server lets everybody do who can connect; none of it moves or delays anything of
    # adjourn's.
    "LISTEN adjourn": True,
    "NOTIFY adjourn": True,
    "SELECT pg_advisory_lock(1633970798)": True,
}
ARGUMENTS = {
    "bigint": "(SELECT no FROM adjourn.task WHERE state = 'running')",
    "bigint[]": "ARRAY(SELECT no FROM adjourn.task WHERE state = 'running')",
    "integer": str(SCHEMA),
    "text": "'saved'",
    "text[]": "ARRAY(SELECT id FROM adjourn.task)",
    "bytea": "'\\x80'::bytea",
    "bytea[]": "ARRAY['\\x80'::bytea]",
    "uuid": "(SELECT engine_run FROM adjourn.task WHERE state = 'running')",
    "boolean": "false",
    "double precision": "0",
}
_CONTENT = (
    "SELECT coalesce(string_agg(md5(t::text), '' ORDER BY md5(t::text)), '') FROM {table} AS t"
)


@pytest.fixture
def logins(as_role: Roles, postgres: Server, database: str) -> Iterator[dict[str, str]]:  # noqa: F811 -- the fixture
    store = PostgresStore(database)
    office = desk(store)
    office.waiting()
    office.begin(office.start())
    office.run(office.start())
    store.close()
    outsider = f"outsider_{os.getpid()}"
    postgres.make_login(outsider)
    yield {role: as_role(role) for role in ROLES[:3]} | {"outsider": login_at(database, outsider)}
    postgres.do(f"DROP ROLE {outsider}")


def tables_of(database: str) -> dict[str, str]:
    """Return every table of ours and of the engine's, and the first column of each."""
    with psycopg.connect(database) as owner:
        rows = owner.execute(
            "SELECT format('%I.%I', nspname, relname), attname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
            " JOIN pg_attribute ON attrelid = pg_class.oid AND attnum = 1"
            " WHERE nspname IN ('adjourn', 'absurd') AND relkind IN ('r', 'p')"
        ).fetchall()
    return {str(table): f'"{column}"' for table, column in rows}


def is_allowed(login: "psycopg.Connection[tuple[object, ...]]", statement: str) -> bool:
    """Try a statement, and undo it."""
    try:
        with login.cursor() as cursor:
            if statement.startswith("COPY") and ("STDOUT" in statement or "STDIN" in statement):
                with cursor.copy(statement.encode()) as copied:
                    list(copied)
            else:
                cursor.execute(statement.encode())
    except (errors.InsufficientPrivilege, errors.UndefinedFunction):
        return False
    except errors.SyntaxError:
        raise
    except psycopg.Error:
        return True  # it went further than it should
    else:
        return True
    finally:
        login.rollback()


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_on_any_table_does_more_than_its_role_may(
    logins: dict[str, str], database: str, role: str
) -> None:
    surprises, tried = [], 0
    with psycopg.connect(logins[role]) as login:
        for table, column in tables_of(database).items():
            for kind, statement in STATEMENTS.items():
                expected = kind in READING and role != "outsider" and table not in HIDDEN
                tried += 1
                if is_allowed(login, statement.format(table=table, column=column)) != expected:
                    surprises.append((kind, table))
        for statement, expected in ELSEWHERE.items():
            if is_allowed(login, statement) != expected:
                surprises.append((statement, ""))
    assert surprises == []
    assert tried > 20 * len(STATEMENTS)


@pytest.mark.parametrize("role", ROLES)
def test_no_function_is_for_anybody_but_those_in_the_table(
    logins: dict[str, str], database: str, role: str
) -> None:
    with psycopg.connect(logins[role]) as login:
        mine = login.execute(
            "SELECT proname, prosecdef FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace AND"
            " has_function_privilege(oid, 'EXECUTE') AND has_schema_privilege(pronamespace, 'USAGE')"
        ).fetchall()
        # Each queue has functions of its own, which are like those of the first.
        assert {
            re.sub("_adjourn_.*", "_adjourn_default", str(name)) for name, _ in mine
        } == FUNCTIONS[role]
        engines = login.execute(
            "SELECT count(*) FROM pg_proc WHERE pronamespace = 'absurd'::regnamespace AND prosecdef"
        ).fetchall()
        assert engines == [(0,)], (
            "what the engine offers runs as whoever calls it, and they may write to no table"
        )
    with psycopg.connect(database) as owner:
        loose = owner.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace AND prosecdef"
            " AND NOT 'search_path=pg_catalog, pg_temp' = ANY(coalesce(proconfig, '{}'))"
        ).fetchall()
    assert loose == [], "who runs as the owner looks for nothing in the schemas of others"


def test_no_function_does_anything_to_another_task_for_an_agent(
    logins: dict[str, str], database: str
) -> None:
    """With the ids of a task that runs, without its key."""
    with (
        psycopg.connect(database, autocommit=True) as owner,
        psycopg.connect(logins["agent"]) as login,
    ):
        tables = [table for table in tables_of(database) if table != "adjourn.supervisor"]

        def content() -> list[object]:
            return [
                owner.execute(_CONTENT.format(table=table).encode()).fetchall() for table in tables
            ]

        before = content()
        functions = login.execute(
            "SELECT proname, ARRAY(SELECT format_type(kind, NULL) FROM unnest(proargtypes) AS kind) FROM pg_proc"
            " WHERE pronamespace = 'adjourn'::regnamespace AND has_function_privilege(oid, 'EXECUTE')"
        ).fetchall()
        for name, kinds in functions:
            words = ", ".join(ARGUMENTS[kind] for kind in kinds)
            with contextlib.suppress(psycopg.Error):
                login.execute(f"SELECT adjourn.{name}({words})".encode())
                login.commit()
            login.rollback()
            assert content() == before, name

"""How the schema comes into a database, and what is refused there."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from adjourn.core.ask import ApprovalAsk, Verb
from adjourn.core.errors import StoreProblem
from adjourn.core.states import TaskState
from adjourn.stores.postgres import schema
from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.postgres.connection import PostgresConnection
from adjourn.stores.postgres.store import PostgresStore
from tests.e2e.shell import Shell
from tests.postgres import Server
from tests.shared.desk import desk

NEWER = f"has schema {SCHEMA + 1}, and this program knows {SCHEMA}"


def test_an_empty_database_becomes_a_store_and_a_second_opening_changes_nothing(
    postgres: Server,
) -> None:
    with postgres.empty_database() as url:
        for _ in range(2):
            store = PostgresStore(url)
            desk(store).start()
            store.close()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT version FROM adjourn.schema_version").fetchall() == [
                (version,) for version in range(1, SCHEMA + 1)
            ]
            assert connection.execute("SELECT absurd.get_schema_version()").fetchall() == [
                ("0.5.1",)
            ]
            assert connection.execute("SELECT count(*) FROM adjourn.task").fetchall() == [(2,)]


def test_of_many_who_open_an_empty_database_at_once_nobody_finds_it_half_made(
    postgres: Server,
) -> None:
    with postgres.empty_database() as url, ThreadPoolExecutor(8) as crowd:
        for store in crowd.map(lambda _: PostgresStore(url), range(8)):
            store.close()


def test_a_newer_schema_is_refused_before_anything_is_written(postgres: Server) -> None:
    with postgres.empty_database() as url:
        PostgresStore(url).close()
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO adjourn.schema_version VALUES (%s)", [SCHEMA + 1])
        with pytest.raises(StoreProblem, match=NEWER):
            PostgresStore(url)


def test_a_program_that_was_at_work_when_the_schema_was_brought_up_to_date_changes_nothing_more(
    postgres: Server,
) -> None:
    """Its connection is as good as before.

    And yet it would write what the new schema does not expect.
    """
    with postgres.empty_database() as url:
        store = PostgresStore(url)
        office = desk(store)
        task, ask = office.waiting()
        queued = office.start()
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO adjourn.schema_version VALUES (%s)", [SCHEMA + 1])
        for change in (
            lambda: office.reply(ask, Verb.APPROVE),
            lambda: office.begin(queued),
            lambda: store.next_queued("default", supervisor="old", fits=lambda _: True),
        ):
            with pytest.raises(StoreProblem, match=NEWER):
                change()
        assert office.task(task.id).state is TaskState.WAITING
        store.close()


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_its_queues(
    postgres: Server,
) -> None:
    with postgres.empty_database() as url:
        db = PostgresConnection(url)
        schema._install_engine(db)
        db.all(b"CREATE SCHEMA adjourn")
        db.last(schema._steps(1))
        db.all(b"INSERT INTO adjourn.schema_version (version) VALUES (1)")
        db.all(b"SELECT absurd.create_queue('adjourn_default')")
        db.close()
        store = PostgresStore(url)
        office = desk(store)
        assert office.run(office.start()).state is TaskState.SUCCEEDED
        assert office.run(office.start(pool="later")).state is TaskState.SUCCEEDED
        store.close()


def test_an_open_ask_of_the_fourth_schema_is_approved_by_one_person(postgres: Server) -> None:
    """What was asked before approvals were counted needs one, and nobody is reminded of it."""
    with postgres.empty_database() as url:
        store = PostgresStore(url)
        office = desk(store)
        _, ask = office.waiting()
        store.close()
        with psycopg.connect(url) as connection:
            connection.execute("ALTER TABLE adjourn.ask DROP approvals, DROP given, DROP remind_at")
            connection.execute("DROP FUNCTION adjourn.add_ask, adjourn.write_ask")
            connection.execute("DROP FUNCTION adjourn.lock_asks_to_remind")
            second = schema._steps(2).decode()
            for name in ("add_ask", "write_ask"):
                begin = second.index(f"CREATE FUNCTION adjourn.{name}(")
                end = second.index("END $$;", begin) + len("END $$;")
                connection.execute(second[begin:end].encode())
            connection.execute("DROP VIEW adjourn.tool_runs, adjourn.approvals")
            connection.execute("DROP FUNCTION adjourn.field")
            connection.execute("DELETE FROM adjourn.schema_version WHERE version >= 5")
        store = PostgresStore(url)
        office = desk(store)
        with store.read() as view:
            old = view.ask(ask.id)
            assert isinstance(old, ApprovalAsk)
            assert (old.given, old.remind_at) == ((), None)
            assert view.asks_to_remind(now=1 << 60) == []
        assert office.run(office.reply(old, Verb.APPROVE)).state is TaskState.SUCCEEDED
        store.close()


@pytest.mark.parametrize("version", ["0.4.0", "0.6.0", "main"])
def test_an_engine_of_another_version_is_refused(postgres: Server, version: str) -> None:
    with postgres.empty_database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE SCHEMA absurd")
            body = f"CREATE FUNCTION absurd.get_schema_version() RETURNS text LANGUAGE sql AS $$ SELECT '{version}'::text $$"
            connection.execute(body.encode())
        with pytest.raises(
            StoreProblem, match=f"has Absurd {version}, and this program knows 0.5.1"
        ):
            PostgresStore(url)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT to_regclass('adjourn.task')").fetchall() == [(None,)]


def test_an_engine_that_does_not_say_its_version_is_refused(postgres: Server) -> None:
    with postgres.empty_database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE SCHEMA absurd")
        with pytest.raises(StoreProblem, match="of an unknown version"):
            PostgresStore(url)


LOADED = """
import sys
from adjourn.cli.app import run
code = run(["inbox"])
print(*sys.modules)
sys.exit(code)
"""


def test_a_shared_store_does_without_sqlite(database: str, tmp_path: Path) -> None:
    place = {"ADJOURN_STORE": database, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [
        name for name in done.stdout.split() if name.startswith(("apsw", "adjourn.stores.sqlite"))
    ] == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_text_is_refused(postgres: Server, encoding: str) -> None:
    narrow = f"narrow_{os.getpid()}"
    postgres.do(
        f"CREATE DATABASE {narrow} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    try:
        with pytest.raises(StoreProblem, match=f"keeps text as {encoding}") as caught:
            PostgresStore(postgres.url(narrow))
        assert "--encoding=UTF8" in caught.value.way_out
    finally:
        postgres.do(f"DROP DATABASE {narrow} WITH (FORCE)")


def test_text_is_the_same_whatever_the_environment_says_of_it(
    database: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    shell.share(database)
    shell.environment["PGCLIENTENCODING"] = "LATIN1"
    task = shell.paused("sh", "-c", "echo 日本; exit 90")["task_id"]
    assert "日本" in shell.adjourn("show", task[:8]).out


@pytest.mark.parametrize("module", ["psycopg", "absurdctl"])
def test_a_part_of_the_extra_that_is_missing_is_named(
    postgres: Server, tmp_path: Path, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text(f'raise ModuleNotFoundError("no", name="{module}")')
    shell = Shell(tmp_path)
    with postgres.empty_database() as url:
        shell.environment |= {
            "ADJOURN_STORE": url,
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "PYTHONPATH": str(tmp_path),
        }
        for words in (("tasks",), ("run", "--", "true")):
            done = shell.adjourn(*words, expect=1)
            assert f"not installed: {module}" in done.err
            assert "pip install 'adjourn[postgres]'" in done.err

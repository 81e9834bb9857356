"""What a login puts into names, settings and bodies must not reach beyond its role."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import Office
from tests.postgres import Server
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_logins import shell_of
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time


@pytest.fixture
def victim(postgres: Server) -> Iterator[str]:
    """Return a role that has no rights."""
    name = f"v{os.getpid() % 100}"
    postgres.make_login(name)
    yield name
    postgres.do(f"DROP ROLE {name}")


POOLS = (
    # Ends a text between dollar signs, and begins another
    "$$;ALTER ROLE {victim} SUPERUSER;SELECT $$",
    "$f$;ALTER ROLE {victim} SUPERUSER;--",
    "$make$;ALTER ROLE {victim} SUPERUSER--",
    "';ALTER ROLE {victim} SUPERUSER--",
    "\\';ALTER ROLE {victim} SUPERUSER--",
    '";ALTER ROLE {victim} SUPERUSER--',
    "%I%L%s;ALTER ROLE {victim} SUPERUSER--",
)
_FORGET_QUEUE = """
DO $$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE pronamespace = 'adjourn'::regnamespace AND proname LIKE '%SUPERUSER%'
    LOOP
        EXECUTE format('DROP FUNCTION %s', made.name);
    END LOOP;
    PERFORM absurd.drop_queue(queue_name) FROM absurd.queues WHERE queue_name LIKE '%SUPERUSER%';
END $$
"""


@pytest.mark.parametrize("role", ["approver", "worker"])
@pytest.mark.parametrize("pool", POOLS)
def test_the_name_of_a_pool_is_never_read_as_sql(
    as_role: Roles,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    victim: str,
    role: str,
    pool: str,
) -> None:
    """A new queue gets functions of its own, which the owner makes.

    The name stands inside of their text.
    """
    name = pool.format(victim=victim)
    assert len(name) <= 40, "a longer one is replaced by a digest"
    with psycopg.connect(as_role("hostile", of=role), autocommit=True) as hostile:
        hostile.execute("SET check_function_bodies = off")  # whoever calls may say so
        hostile.execute("SELECT adjourn.made_queue(%s)", [name])
    found = postgres.do(f"SELECT rolsuper FROM pg_roles WHERE rolname = '{victim}'")  # noqa: S608 -- our own name
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(_FORGET_QUEUE)
    assert found == [(False,)]


GARBAGE = (b"", b"\xc1", b"\x94", b"\x80", b"\xff" * 300, b'{"a"')


@pytest.mark.parametrize("garbage", GARBAGE)
def test_what_an_agent_writes_of_its_own_task_breaks_no_verb_of_others(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    tmp_path: Path,
    garbage: bytes,
) -> None:
    worker = offices["worker"]
    other, _ = worker.waiting()
    run = worker.begin(worker.start()).run
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(as_role("bot", of="agent"), autocommit=True) as bot:
        bot.execute("SELECT set_config('adjourn.key', %s, false)", [store.run_key(run.task_id)])
        no = bot.execute("SELECT no FROM adjourn.task WHERE id = %s", [run.task_id]).fetchall()[0][
            0
        ]
        for statement in (
            """
            SELECT adjourn.add_call((%(no)s::bigint << 20) + 7, 'pending', 1, sha256(%(bytes)s), NULL, NULL, NULL,
                %(bytes)s, %(bytes)s)
            """,
            """
            SELECT adjourn.add_ask((%(no)s::bigint << 20) + 7, 'forgedask', 'pending', 'approval', 1,
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint, NULL, 7, NULL, NULL, NULL, NULL, NULL,
                '[]', NULL, 1, %(bytes)s, %(bytes)s)
            """,
            "SELECT adjourn.add_document(%(no)s, 'saved', %(bytes)s)",
        ):
            with suppress(errors.InsufficientPrivilege, errors.IntegrityError):
                bot.execute(statement.encode(), {"no": no, "bytes": garbage})
    anna = shell_of(tmp_path / "anna", as_role("anna", of="approver"))
    for words in (
        ("tasks",),
        ("inbox",),
        ("show", other.id),
        ("approve", worker.open_ask(other).id),
    ):
        anna.adjourn(*words)

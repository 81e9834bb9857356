"""A primary and a streaming standby, of the tests' own.

Real servers, real WAL, a real promotion.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from tests.postgres import Server

_CONFIG = """
listen_addresses = ''
max_connections = 60
shared_buffers = 32MB
max_wal_size = 256MB
wal_keep_size = 64MB
wal_receiver_timeout = 60s
"""
_PATIENCE = 30  # seconds


class Node:
    """One server: a directory with its socket and its log, and another below it with its data."""

    def __init__(self, place: Path, programs: Path, user: str | None) -> None:
        self.place = place
        self.data = str(place / "data")
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, program: str, *words: str) -> None:
        """Run one of PostgreSQL's programs; a server does not run as root."""
        subprocess.run(
            [str(self._programs / program), *words],
            check=True, capture_output=True, timeout=60, user=self._user, cwd="/",
        )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.place / "log").open("ab") as log:
            started: Any = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", self.data, "-k", str(self.place)],
                stdout=log, stderr=log, user=self._user, cwd="/", start_new_session=True,
            )  # fmt: skip
        self._process = started
        self.until("SELECT true")

    def do(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement."""
        with psycopg.connect(self.conninfo(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def conninfo(self, database: str = "postgres") -> str:
        """Return how to reach it."""
        return f"host={self.place} user=postgres dbname={database}"

    def until(self, question: str, database: str = "postgres") -> None:
        """Wait until a question is answered with yes."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            with suppress(psycopg.Error):
                if self.do(question, database)[0][0]:
                    return
            time.sleep(0.02)
        raise AssertionError(f"never so: {question}\n{(self.place / 'log').read_text()[-3000:]}")

    def kill(self) -> None:
        """Have all of its processes die at once, also those that are stopped."""
        if self._process is None:
            return
        children = (
            Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        )
        for pid in (self._process.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(10)
        self._process = None


class Pair:
    """A primary that somebody works on, and a standby that follows it."""

    def __init__(self, primary: Node, standby: Node) -> None:
        self.primary = primary
        self.standby = standby

    @property
    def url(self) -> str:
        """The address of the store for machines: whichever of the two can be written to."""
        hosts = f"{self.primary.place},{self.standby.place}"
        words = {
            "host": hosts,
            "user": "postgres",
            "dbname": "store",
            "target_session_attrs": "read-write",
        }
        return f"postgresql:///?{urlencode(words)}"

    def stop_sending(self) -> None:
        """Stop the primary's sender: what is committed from now on does not reach the standby."""
        ((pid,),) = self.primary.do("SELECT pid FROM pg_stat_replication")
        os.kill(int(pid), signal.SIGSTOP)

    def fail_over(self) -> None:
        """Have the primary die, and promote the standby with what it has received."""
        self.primary.kill()
        self.standby.do("SELECT pg_promote(true, 30)")
        self.standby.until("SELECT NOT pg_is_in_recovery()")


@contextmanager
def streaming_pair(server: Server, *, is_synchronous: bool = False) -> Iterator[Pair]:
    """Have a primary with an empty database `store`, and a standby that streams from it."""
    assert server.programs is not None
    user = "pgserver" if os.geteuid() == 0 else None
    place = Path(tempfile.mkdtemp(prefix="adj-pair-", dir="/tmp"))  # the path of a socket is short
    place.chmod(0o755)
    nodes = [Node(place / name, server.programs, user) for name in ("a", "b")]
    primary, standby = nodes
    try:
        for node in nodes:
            node.place.mkdir(mode=0o700)
            if user:
                os.chown(node.place, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        primary.run(
            "initdb",
            "-D",
            primary.data,
            "-U",
            "postgres",
            "--auth=trust",
            "-E",
            "UTF8",
            "--no-sync",
        )
        with (primary.place / "data" / "postgresql.conf").open("a") as file:
            file.write(_CONFIG)
        primary.start()
        primary.do("CREATE DATABASE store TEMPLATE template0")
        standby.run(
            "pg_basebackup", "-D", standby.data, "-h", str(primary.place), "-U", "postgres",
            "-R", "-X", "stream", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        standby.start()
        primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
        if is_synchronous:
            primary.do("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.do("SELECT pg_reload_conf()")
            primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        yield Pair(primary, standby)
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(place, ignore_errors=True)

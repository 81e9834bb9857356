"""Machines that share a store: each has files and locks of its own."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from adjourn.stores.postgres.store import PostgresStore
from tests.e2e.shell import Shell, until
from tests.postgres import Server

LEASE = 3  # seconds, the shortest that is allowed


class Roles(Protocol):
    """Makes a login with a role, and returns its address."""

    def __call__(self, name: str, *, of: str | None = None) -> str: ...


class Machine(Shell):
    """A shell with a place of its own for the files of runs, so that it sees of the others only what the database knows.

    What it starts works in a directory that all of them have.
    """

    def __init__(self, place: Path, url: str, *, work: Path) -> None:
        place.mkdir()
        super().__init__(place)
        self.work = work
        self.environment |= {
            "ADJOURN_STORE": url,
            "XDG_STATE_HOME": str(place / "state"),
            "ADJOURN_LEASE": str(LEASE),
        }
        self.workers: list[subprocess.Popen[bytes]] = []

    def queue(self, script: str, *words: str) -> str:
        """Leave a shell script to whichever worker takes it, and return the task's id."""
        done = self.adjourn(
            "run", "--detach", "--output", "json", *words, "--", "sh", "-c", script, cwd=self.work
        )
        task: str = done.doc["task_id"]
        return task

    def waiting(self, script: str) -> str:
        """Run a shell script that asks for approval, and return the task's id."""
        done = self.adjourn(
            "run", "--output", "json", "--", "sh", "-c", script, cwd=self.work, expect=10
        )
        task: str = done.doc["task_id"]
        return task

    def begin_worker(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a worker."""
        with (self.place / f"worker-{len(self.workers)}.log").open("wb") as log:
            process = self.start("worker", *words, stdout=subprocess.DEVNULL, stderr=log)
        self.workers.append(process)
        return process

    def worker(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a worker, and wait until everyone knows of it."""
        process = self.begin_worker(*words)
        until(
            lambda: str(process.pid) in self.adjourn("worker", "--status").out,
            what="the worker is there",
        )
        return process

    def log(self, number: int = 0) -> str:
        """Return what a worker said."""
        return (self.place / f"worker-{number}.log").read_text()

    def stop(self) -> None:
        """Have the workers leave."""
        for process in self.workers:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.workers:
            process.wait(timeout=60)


@pytest.fixture
def machine(database: str, tmp_path: Path) -> Iterator[Callable[[str], Machine]]:
    """Return what makes a machine; at the end nothing runs on any of them."""
    machines: list[Machine] = []
    work = tmp_path / "work"
    work.mkdir()

    def make(name: str) -> Machine:
        machines.append(Machine(tmp_path / name, database, work=work))
        return machines[-1]

    yield make
    for each in machines:
        each.stop()
    for each in machines:
        assert each.end() == {}
    assert Shell(work).end() == {}


_UNGUARDED = """
DO $$
DECLARE
    guard record;
BEGIN
    FOR guard IN SELECT tgname, tgrelid::regclass AS place FROM pg_trigger WHERE tgname LIKE 'guard%' LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', guard.tgname, guard.place);
    END LOOP;
    FOR guard IN SELECT oid::regprocedure AS place FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace AND prosecdef LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER RESET search_path', guard.place);
    END LOOP;
    DROP FUNCTION adjourn.restrict_queue_functions;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA adjourn TO PUBLIC;
END $$
"""
_FUNCTIONS = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace AND prokind = 'f'"


def login_at(url: str, login: str, *, password: str | None = None) -> str:
    """Return the address of a database for another login."""
    return f"postgresql:///?{urlencode(conninfo_to_dict(url) | {'user': login, 'password': password or login})}"


@pytest.fixture
def as_role(postgres: Server, database: str) -> Iterator[Roles]:
    """Return what makes a login with one of the roles, called by that or otherwise, and its address."""
    name = str(conninfo_to_dict(database)["dbname"])
    owner = PostgresStore(database)
    without_roles = [definition for (definition,) in postgres.do(_FUNCTIONS, name)]
    assert not any(
        "FUNCTION adjourn.restrict_queue_functions(" in each for each in without_roles
    ), "another test left its roles"
    owner.make_roles()
    owner.make_roles()
    owner.close()
    logins: list[str] = []

    def make(name: str, *, of: str | None = None) -> str:
        login = f"{name}_{os.getpid()}"
        postgres.make_login(login, f"IN ROLE adjourn_{of or name}")
        logins.append(login)
        return login_at(database, login)

    yield make
    for login in logins:
        # What a login made for its session goes with the session, a moment after the login left
        postgres.do(f"DROP OWNED BY {login}", name)
        postgres.do(f"DROP ROLE {login}")
    # The roles put others in the place of some functions
    postgres.do(";\n".join([_UNGUARDED, *without_roles]), name)

"""A pooler between adjourn and the database.

PgBouncer in transaction mode, where each transaction may get another connection.
"""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.e2e.shell import until
from tests.needs import needs
from tests.postgres import Server
from tests.shared.conftest import Machine

pytestmark = pytest.mark.timeout(200)
ASKS_90 = '[ "$AUTO_APPROVAL" ] || exit 90; echo deployed >> effects'
EARS = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'adjourn ear' AND datname = '{}'"
CONFIG = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {door}
unix_socket_dir =
auth_type = trust
auth_file = {place}/users.txt
pool_mode = transaction
default_pool_size = 2
logfile = {place}/log
"""


@pytest.fixture
def pooler(database: str) -> Iterator[str]:
    """Return the address of the database behind a pooler that has two connections for everybody."""
    program, server, door = needs("pgbouncer"), conninfo_to_dict(database), _free_port()
    host = str(server.get("host", "localhost"))
    with TemporaryDirectory() as place:
        Path(place, "config.ini").write_text(
            CONFIG.format(host=host, port=server.get("port", 5432), place=place, door=door)
        )
        Path(place, "users.txt").write_text(
            f'"{server["user"]}" "{server.get("password") or ""}"\n'
        )
        process = subprocess.Popen(
            [program, *_as_whoever_may_use(host, place), f"{place}/config.ini"]
        )
        until(lambda: _answers(door), what="the pooler answers")
        yield f"postgresql://{server['user']}@127.0.0.1:{door}/{server['dbname']}"
        process.terminate()
        process.wait(20)


def _as_whoever_may_use(host: str, place: str) -> list[str]:
    """A pooler runs as anybody but root; as the server does, it may use the server's socket."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwuid(os.stat(host).st_uid).pw_name if os.path.isabs(host) else "nobody"
    shutil.chown(place, user)
    return ["-u", user]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _answers(door: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", door)) == 0


def test_work_goes_on_behind_a_pooler_that_mixes_connections(
    machine: Callable[[str], Machine], postgres: Server, database: str, pooler: str
) -> None:
    """Nothing is kept between transactions: no prepared statement, no setting, no lock."""
    here = machine("here")
    here.environment["ADJOURN_STORE"] = pooler
    refused = here.adjourn("tasks", expect=1).err
    assert "is behind a pooler" in refused
    assert "ADJOURN_LISTEN" in refused

    here.environment["ADJOURN_LISTEN"] = database
    with ThreadPoolExecutor(6) as people:
        tasks = list(people.map(here.waiting, [ASKS_90] * 6))
        here.worker("--max-active", "6")
        assert len(postgres.do(EARS.format(conninfo_to_dict(database)["dbname"]))) == 1
        list(people.map(lambda ask: here.adjourn("approve", ask["id"]), here.inbox()))
    for task in tasks:
        here.adjourn("wait", task, "--timeout", "50")
    assert (here.work / "effects").read_text().split() == ["deployed"] * 6

    there = machine("there")  # where nobody can listen
    there.environment |= {"ADJOURN_STORE": pooler, "ADJOURN_LISTEN": "off"}
    task = there.queue("echo deployed >> effects", "--pool", "quiet")
    there.adjourn("worker", "--once", "--pool", "quiet")
    assert there.state(task) == "succeeded"
    assert there.adjourn("audit", "verify").out.startswith("Whole")

"""A database that was put back to an earlier state is noticed by whoever knows better."""

import os
import signal
from collections.abc import Callable

from tests.e2e.shell import until
from tests.postgres import Server
from tests.shared.conftest import Machine
from tests.shared.test_faults import end_all, name_of

Make = Callable[[str], Machine]


def copied(server: Server, database: str, name: str) -> None:
    server.do(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    end_all(server, database)
    server.do(f"CREATE DATABASE {name} TEMPLATE {name_of(database)}")


OLDER = f"older_{os.getpid()}"  # tests beside this one have copies of their own


def put_back(server: Server, database: str, name: str) -> None:
    """Have the copy stand where the database was, as after a failover."""
    server.do(f"DROP DATABASE {name_of(database)} WITH (FORCE)")
    server.do(f"ALTER DATABASE {name} RENAME TO {name_of(database)}")


def test_an_older_copy_is_refused_by_the_machine_that_knows_better(
    machine: Make, postgres: Server, database: str
) -> None:
    """What ran since the copy was made could run a second time."""
    here, fresh = machine("here"), machine("fresh")
    task = here.waiting('[ "$AUTO_APPROVAL" ] || exit 90; echo >> effects')
    copied(postgres, database, OLDER)
    here.adjourn("approve", here.inbox()[0]["id"])
    here.adjourn("resume", task, cwd=here.work)
    put_back(postgres, database, OLDER)
    (ask,) = here.inbox()
    for words in (
        ("worker", "--once"),
        ("approve", ask["id"]),
        ("resume", task),
        ("run", "--", "true"),
    ):
        refused = here.adjourn(*words, expect=5)
        assert "is an older copy, or another database" in refused.err
        assert "adjourn store accept" in refused.err
    assert here.state(task) == "waiting", "it can be looked at"
    assert fresh.state(task) == "waiting", "whoever has seen nothing cannot know"
    assert len((here.work / "effects").read_text().split("\n")) == 2
    here.adjourn("store", "accept", "--yes")  # as it was told to
    assert here.state(task) == "waiting"
    here.adjourn("run", "--", "true")


def test_a_worker_that_lives_through_the_change_takes_nothing_from_an_older_copy(
    machine: Make, postgres: Server, database: str
) -> None:
    here = machine("here")
    worker = here.worker()
    worker.send_signal(signal.SIGSTOP)  # a database that is copied must have no visitors
    copied(postgres, database, OLDER)
    worker.send_signal(signal.SIGCONT)
    here.queue("echo >> effects")
    until(lambda: "state=succeeded" in here.log(), what="it was done")
    put_back(postgres, database, OLDER)
    until(lambda: "is an older copy" in here.log(), what="it is noticed")
    assert (here.work / "effects").read_text() == "\n"

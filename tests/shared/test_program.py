"""The program itself, while something is wrong with its database.

The sentence, the way out, the exit code.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from adjourn.core.ask import Verb
from adjourn.core.errors import Conflict, StoreProblem
from adjourn.core.states import TaskState
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import DONE, Office
from tests.e2e.shell import Done, until
from tests.needs import missing
from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine, login_at
from tests.shared.desk import desk
from tests.shared.proxy import Wire, wire
from tests.shared.test_faults import name_of

Make = Callable[[str], Machine]
ASKS = '[ "$AUTO_APPROVAL" ] || exit 90; echo "$ADJOURN_RUN_ID" >> effects'
pytestmark = pytest.mark.timeout(280)


@pytest.fixture
def wired(machine: Make, database: str, tmp_path: Path) -> Iterator[tuple[Wire, Machine]]:
    """Return a machine whose way to the database is a wire."""
    if "host=/" not in database and "host=%2F" not in database:
        missing("a server that listens on a unix socket")
    place = tmp_path / "wire"
    place.mkdir()
    with wire(database, place) as (laid, url):
        here = machine("wired")
        here.environment |= {"ADJOURN_STORE": url, "ADJOURN_LISTEN": url}
        yield laid, here


def told(done: Done, *, code: int, sentence: str, way_out: str) -> None:
    """Insist on how a failure is told."""
    done.must(code)
    assert re.search(sentence, done.err), done.err
    assert re.search(f"try: .*{way_out}", done.err), done.err


def effects(machine: Machine) -> list[str]:
    path = machine.work / "effects"
    return path.read_text().split() if path.exists() else []


# --- at the door ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("inbox",),
        ("approve", "x"),
        ("run", "--", "true"),
        ("worker", "--once"),
        ("worker", "--status"),
        ("doctor",),
    ],
)
def test_a_database_that_is_down_is_told_by_every_verb(
    machine: Make, words: tuple[str, ...]
) -> None:
    here = machine("here")
    here.environment["ADJOURN_STORE"] = "postgresql://anna:secret@localhost:1/adjourn"
    done = here.adjourn(*words, expect=1)
    assert "the database adjourn at localhost:1 cannot be reached" in done.out + done.err
    assert "pg_isready -h" in done.out + done.err
    assert "secret" not in done.out + done.err


def test_wrong_credentials_are_told_without_the_password(machine: Make, database: str) -> None:
    here = machine("here")
    here.environment["ADJOURN_STORE"] = login_at(database, "nobody", password="secret")  # noqa: S106 -- it is nobody's
    done = here.adjourn("inbox", expect=None)
    told(
        done,
        code=5,
        sentence="does not let us in",
        way_out="check user and password in the URL of the store",
    )
    assert "secret" not in done.err


def test_a_login_that_may_not_use_this_database_is_refused(machine: Make, postgres: Server) -> None:
    login = f"stranger_{os.getpid()}"
    postgres.make_login(login)
    try:
        with postgres.empty_database() as url:
            postgres.do(f"REVOKE CONNECT ON DATABASE {name_of(url)} FROM PUBLIC")
            here = machine("here")
            here.environment["ADJOURN_STORE"] = login_at(url, login)
            told(
                here.adjourn("inbox", expect=None),
                code=5,
                sentence="does not let us in: permission denied",
                way_out="psql",
            )
    finally:
        postgres.do(f"DROP ROLE {login}")


@pytest.fixture
def member(machine: Make, postgres: Server, database: str) -> Iterator[Callable[[str], Machine]]:
    """Return what makes a machine that comes as a role of its own."""
    name, own = name_of(database), f"member_{os.getpid()}"
    PostgresStore(database).close()

    def make(words: str) -> Machine:
        postgres.make_login(own, "SUPERUSER")
        postgres.do(f"ALTER ROLE {own} {words}")
        here = machine("member")
        here.environment["ADJOURN_STORE"] = login_at(database, own)
        return here

    yield make
    postgres.do(f"DROP OWNED BY {own}", name)
    postgres.do(f"DROP ROLE {own}")


def test_a_database_without_a_free_connection_is_told(member: Callable[[str], Machine]) -> None:
    here = member("NOSUPERUSER CONNECTION LIMIT 0")
    told(
        here.adjourn("inbox", expect=None),
        code=1,
        sentence="has no connection left",
        way_out="run the command again",
    )


def test_a_read_only_database_can_be_looked_at_and_refuses_the_rest(
    member: Callable[[str], Machine], machine: Make
) -> None:
    owner = machine("owner")
    task = owner.waiting(ASKS)
    owner.adjourn(
        "run", "--expires-after", "1s", "--", "sh", "-c", "exit 90", cwd=owner.work, expect=10
    )
    here = member("SET default_transaction_read_only = on")
    time.sleep(1)  # that it has expired is for somebody else to say
    assert here.state(task) == "waiting"
    ask = here.inbox()[0]
    told(
        here.adjourn("approve", ask["id"], expect=None),
        code=1,
        sentence="is read-only",
        way_out="name the primary server",
    )
    told(
        here.adjourn("run", "--", "true", expect=None),
        code=1,
        sentence="is read-only",
        way_out="name the primary server",
    )
    assert re.search("LOOK  database .* is read-only", here.adjourn("doctor", expect=1).out)
    assert owner.state(task) == "waiting"


def test_an_older_program_refuses_a_newer_schema(machine: Make, postgres: Server) -> None:
    with postgres.empty_database() as url:
        here = machine("here")
        here.environment["ADJOURN_STORE"] = url
        here.adjourn("run", "--", "true", cwd=here.work)
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO adjourn.schema_version VALUES (99)")
        for words in (("inbox",), ("run", "--", "true"), ("worker", "--once")):
            refused = here.adjourn(*words, expect=None)
            told(
                refused,
                code=1,
                sentence="has schema 99, and this program knows",
                way_out="pip install -U adjourn",
            )


# --- in the middle --------------------------------------------------------------------------------


def test_a_decision_whose_reply_is_lost_gives_the_same_receipt(wired: tuple[Wire, Machine]) -> None:
    laid, here = wired
    for _ in range(3):
        here.waiting(ASKS)
        (ask,) = here.inbox()
        laid.cut_at = b"COMMIT\0"
        said = here.json("approve", ask["id"])
        assert laid.cut_at is None, "it was cut"
        (receipt,) = said["receipts"]
        trail = [
            msgspec.json.decode(line) for line in here.adjourn("audit", "export").out.splitlines()
        ]
        assert [
            row["kind"]
            for row in trail
            if (row["place"], row["seal"]) == (receipt["place"], receipt["seal"])
        ] == ["ask_approved"]
        assert [row["kind"] for row in trail if row["facts"].get("ask") == ask["id"]].count(
            "ask_approved"
        ) == 1


@pytest.mark.parametrize("hears", [True, False])
def test_a_connection_cut_at_any_statement_of_a_decision_leaves_all_or_nothing(
    wired: tuple[Wire, Machine],
    hears: bool,  # noqa: FBT001 -- a case of the test
) -> None:
    """By the program for some, below for all."""
    laid, here = wired
    laid.carries_the_word = hears
    codes: list[int] = []
    for number in (4, 8, 12, 16, 20, 40, 200):
        task = here.waiting(ASKS)
        ask = here.inbox()[-1]
        laid.cut_after = number
        done = here.adjourn("approve", ask["id"], expect=None)
        laid.cut_after = None
        says_all_or_nothing(done, here.state(task))
        codes.append(done.code)
    assert codes[-1] == 0, "the last one gets through"


def says_all_or_nothing(done: Done, state: str) -> None:
    if done.code == 0:
        assert state == "queued"
        return
    assert done.code == 1, done
    assert "try: " in done.err, done.err
    is_told = "nobody knows" in done.err or "it was recorded, and then" in done.err
    assert state == "waiting" or is_told, (state, done.err)


class Cut:
    """Does one thing to a store again and again, cut at the first word, the second, and so on until it gets through."""

    def __init__(self, laid: Wire, url: str) -> None:
        self._laid = laid
        self._url = url

    def each(
        self, prepare: Callable[[Office], Any], act: Callable[[Office, Any], object]
    ) -> Iterator[tuple[Office, Any]]:
        """Yield the office and what was prepared, after each cut."""
        for number in range(200):
            store = PostgresStore(self._url, listen_url=self._url)
            office = desk(store)
            thing = prepare(office)
            before = self._laid.cuts
            self._laid.cut_after = number
            try:
                act(office, thing)
            except (StoreProblem, Conflict) as error:
                assert error.sentence  # noqa: PT017 -- told in a sentence, whichever it is
            self._laid.cut_after = None
            yield office, thing
            store.close()
            if self._laid.cuts == before:
                return
        pytest.fail("it never got through")


@pytest.fixture
def cut(database: str, tmp_path: Path) -> Iterator[Cut]:
    if "host=/" not in database and "host=%2F" not in database:
        missing("a server that listens on a unix socket")
    with wire(database, tmp_path) as (laid, url):
        yield Cut(laid, url)


def test_a_decision_that_is_cut_at_every_statement_in_turn_counts_wholly_or_not_at_all(
    cut: Cut,
) -> None:
    times = 0
    for office, waiting in cut.each(
        lambda office: office.waiting(),
        lambda office, waiting: office.reply(waiting[1], Verb.APPROVE),
    ):
        task = office.task(waiting[0].id)
        kinds = [event.kind for event in office.events(task)]
        assert kinds.count("ask_approved") == (task.state is TaskState.QUEUED)
        assert task.state in {TaskState.QUEUED, TaskState.WAITING}
        times += 1
    assert times > 2, "it was cut, in more than one place"


def test_a_claim_that_is_cut_at_every_statement_in_turn_is_made_or_not(cut: Cut) -> None:
    times = 0
    for office, task in cut.each(
        lambda office: office.start(), lambda office, task: office.claim(task)
    ):
        found = office.task(task.id)
        assert (found.state, found.runs) in {(TaskState.QUEUED, 0), (TaskState.RUNNING, 1)}
        times += 1
    assert times > 2, "it was cut, in more than one place"


def test_an_end_that_is_cut_at_every_statement_in_turn_can_be_told_again(cut: Cut) -> None:
    times = 0
    for office, claimed in cut.each(
        lambda office: office.begin(office.start()),
        lambda office, claimed: office.controller.runs.finish(claimed.run, DONE),
    ):
        run = claimed.run
        if office.task(run.task_id).state is TaskState.RUNNING:
            office.controller.runs.finish(run, DONE)
        task = office.task(run.task_id)
        assert task.state is TaskState.SUCCEEDED
        assert [event.kind for event in office.events(task)].count("run_completed") == 1
        times += 1
    assert times > 2, "it was cut, in more than one place"


def test_a_foreground_run_outlives_a_short_absence_of_its_database(
    wired: tuple[Wire, Machine], postgres: Server, database: str
) -> None:
    laid, here = wired
    process = here.start(
        "run",
        "--output",
        "json",
        "--",
        "sh",
        "-c",
        "touch began; sleep 2; echo once >> effects",
        cwd=here.work,
    )
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'adjourn%' AND datname = "
    until((here.work / "began").exists, what="it runs")
    for _ in range(5):
        postgres.do(f"{end}'{name_of(database)}'")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert effects(here) == ["once"]
    assert laid.cuts == 0


# --- slow, and wrong about the time ---------------------------------------------------------------


def test_a_slow_database_is_waited_for(wired: tuple[Wire, Machine], sweep: str) -> None:
    """Two seconds for each word, in the long sweep for a decision, too."""
    laid, here = wired
    task = here.waiting(ASKS)
    laid.delay = 2.0 if sweep == "full" else 1.6
    here.adjourn("inbox")
    laid.delay = 2.0 if sweep == "full" else 0.1
    (ask,) = here.inbox()
    here.adjourn("approve", ask["id"])
    laid.delay = 0.0
    assert here.state(task) == "queued"


@pytest.mark.serial
def test_a_worker_starts_and_keeps_what_it_runs_however_slow_its_database_is(
    wired: tuple[Wire, Machine], machine: Make
) -> None:
    """For a lease of thirty seconds that is two for each word.

    The first is over before the gate opens.
    """
    laid, here = wired
    here.worker()
    laid.delay = LEASE / 15
    task = machine("near").queue(f"echo begun >> effects; sleep {2 * LEASE}; echo done >> effects")
    until(lambda: "done" in effects(here), seconds=60, what="it ran to its end")
    laid.delay = 0.0
    until(lambda: here.state(task) == "succeeded", what="it is told")
    assert effects(here) == ["begun", "done"]
    assert here.log().count(" started") == 1 + 1, here.log()  # the worker, and the run


SKEW = "import time\n_ns, _s = time.time_ns, time.time\ntime.time_ns = lambda: _ns() + {0} * 10**9\ntime.time = lambda: _s() + {0}\n"


@pytest.mark.serial
def test_clocks_that_are_an_hour_apart_change_nothing(machine: Make, tmp_path: Path) -> None:
    """The database's clock decides: of what was asked when, of what expires, and of leases."""
    early, late = machine("early"), machine("late")
    for each, hours in ((early, -1), (late, 1)):
        skew = tmp_path / f"skew{hours}"
        skew.mkdir()
        (skew / "sitecustomize.py").write_text(SKEW.format(hours * 3600))
        each.environment["PYTHONPATH"] = os.pathsep.join(
            [str(skew), each.environment.get("PYTHONPATH", "")]
        )
    late.worker()
    early.worker()
    asking = '[ "$AUTO_APPROVAL" ] || exit 90; sleep 4; echo once >> effects'
    task = early.queue(asking, "--expires-after", "30m")
    until(lambda: early.state(task) == "waiting", what="it asks")
    (ask,) = late.inbox()
    assert late.state(task) == "waiting", "half an hour is not over"
    for verb in (("inbox",), ("tasks",), ("worker", "--status"), ("show", task)):
        told = late.adjourn(*verb).out + early.adjourn(*verb).out
        assert not re.search(r"(?<!\S)\d+h(?: \d+[ms])? ago|in the future", told), verb
    early.adjourn("snooze", ask["id"], "--for", "20m")
    assert late.inbox() == []
    late.adjourn("snooze", ask["id"], "--off")
    late.adjourn("approve", ask["id"])
    until(
        lambda: late.state(task) == "succeeded",
        what="it was done, and longer than a lease lasts",
        seconds=40,
    )
    assert effects(early) == ["once"]
    trail = early.json("show", task)
    moments = re.findall(r'"at": ?"?([^",}]+)', str(trail).replace("'", '"'))
    assert moments == sorted(moments)

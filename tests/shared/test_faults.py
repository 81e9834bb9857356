"""What goes wrong between adjourn and its database.

A sentence, the same receipt, and nothing lost.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import gettempdir

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from adjourn.core.ask import Principal, Verb
from adjourn.core.errors import Misuse, StoreProblem, StoreRefused
from adjourn.core.states import TaskState
from adjourn.stores.postgres.store import PostgresStore
from adjourn.testing.open_stores import is_awake
from adjourn.testing.values import a_task
from tests.e2e.shell import until
from tests.needs import missing
from tests.postgres import Server, server_at
from tests.shared.conftest import login_at
from tests.shared.desk import desk
from tests.shared.proxy import Wire, wire
from tests.shared.test_engine import heard


@pytest.fixture
def laid_wire(database: str, tmp_path: Path) -> Iterator[tuple[Wire, str]]:
    if "host=/" not in database and "host=%2F" not in database:
        missing("a server that listens on a unix socket")
    with wire(database, tmp_path) as (laid, url):
        yield laid, url


@pytest.fixture
def wired(laid_wire: tuple[Wire, str]) -> Iterator[tuple[Wire, PostgresStore]]:
    laid, url = laid_wire
    # As with a pooler: every statement goes over the wire by name
    store = PostgresStore(url, listen_url=url)
    yield laid, store
    store.close()


def tasks(store: PostgresStore) -> list[str]:
    with store.read() as view:
        return [task.id for task in view.tasks(limit=100)]


def test_a_commit_whose_reply_is_lost_counts(wired: tuple[Wire, PostgresStore]) -> None:
    """The same receipt as if the reply had come, and the decision is there once."""
    laid, store = wired
    office = desk(store)
    for number in range(20):
        task, ask = office.waiting()
        laid.cut_at = b"COMMIT\0"
        assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
        assert laid.cuts == number + 1
        assert [event.kind for event in office.events(task)].count("ask_approved") == 1


def test_a_commit_that_the_server_never_heard_is_told_and_leaves_no_trace(
    wired: tuple[Wire, PostgresStore],
) -> None:
    laid, store = wired
    laid.carries_the_word = False
    office = desk(store)
    for _ in range(5):
        task, ask = office.waiting()
        laid.cut_at = b"COMMIT\0"
        with pytest.raises(StoreProblem, match="before this was saved"):
            office.reply(ask, Verb.APPROVE)
        assert office.task(task.id).state is TaskState.WAITING
        assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED


def test_a_commit_that_died_with_the_server_is_not_taken_for_another_of_the_same_number(
    tmp_path: Path,
) -> None:
    """A server that comes back hands out the numbers of transactions again of which it had written nothing down."""
    server = own_server("numbers")

    def crash() -> None:
        server.kill()
        server.start()
        for _ in range(20):
            server.do("SELECT pg_current_xact_id()")

    with server.empty_database() as url, wire(url, tmp_path) as (laid, address):
        # What is said is never prepared, and can be cut at
        store = PostgresStore(address, listen_url=address)
        office = desk(store)
        task, ask = office.waiting()
        laid.carries_the_word, laid.meanwhile, laid.cut_at = False, crash, b"COMMIT\0"
        with pytest.raises(StoreProblem, match="before this was saved"):
            office.reply(ask, Verb.APPROVE)
        assert office.task(task.id).state is TaskState.WAITING
        assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
        laid.cut_at = b"COMMIT\0"
        with pytest.raises(StoreProblem, match="before this was saved"), store.change() as tx:
            tx.keep_document(task.id, "progress", b"half")
        laid.meanwhile, laid.carries_the_word, laid.cut_at = lambda: None, True, b"COMMIT\0"
        with store.change() as tx:
            tx.keep_document(task.id, "progress", b"whole")
            tx.add_message(task.id, 1, b"a message")
        assert laid.cuts == 3
        store.close()


def test_a_claim_whose_reply_is_lost_is_made_once(laid_wire: tuple[Wire, str]) -> None:
    """It goes out in one packet: what became of it is seen by who has the run."""
    laid, url = laid_wire
    store = PostgresStore(url)
    office, ear = desk(store), store.listen()
    for number, is_heard in enumerate([True, False] * 3):
        task = office.start()
        assert heard(store, ear, supervisor="anna") == task
        laid.carries_the_word, laid.cut_at = is_heard, b"run_claimed"
        office.claim(task, supervisor="anna")
        assert laid.cuts == number + 1
        assert office.task(task.id).runs == 1
        assert [event.kind for event in office.events(task)].count("run_claimed") == 1
    ear.close()
    store.close()


def test_a_claim_that_the_server_is_still_making_when_it_is_cut_off_is_ours(
    laid_wire: tuple[Wire, str],
) -> None:
    """A look that comes too early sees a task that nobody has, and the next one that it is taken.

    By us.
    """
    laid, url = laid_wire
    store = PostgresStore(url)
    office, ear = desk(store), store.listen()
    task = office.start()
    assert heard(store, ear, supervisor="anna") == task
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("BEGIN")
        # Whoever tells something waits
        other.execute("SELECT 1 FROM adjourn.lock WHERE name = 'trail' FOR UPDATE")
        laid.cut_at = b"run_claimed"
        threading.Timer(1.0, lambda: other.execute("ROLLBACK")).start()
        assert office.claim(task, supervisor="anna").run.number == 1
    assert laid.cuts == 1
    assert [event.kind for event in office.events(task)].count("run_claimed") == 1
    ear.close()
    store.close()


WORDS = [
    b"BEGIN",
    b"adjourn.add_task",
    b"adjourn.add_call",
    b"enqueue_adjourn",
    b"seal_events",
    b"pg_notify",
    b"COMMIT\0",
]


@pytest.mark.parametrize(("word", "is_heard"), list(product(WORDS, [True, False])))
def test_wherever_a_connection_breaks_what_was_told_is_so_and_the_next_change_works(
    wired: tuple[Wire, PostgresStore],
    word: bytes,
    is_heard: bool,  # noqa: FBT001 -- pytest hands it over by its name
) -> None:
    """Many statements go out in one go: the server may have heard all of them, or none."""
    laid, store = wired
    laid.cut_at, laid.carries_the_word = word, is_heard
    saved = has_started(store)
    assert laid.cuts == 1
    assert len(tasks(store)) == saved
    assert saved or word not in {b"BEGIN", b"adjourn.add_task"}, (
        "nothing that counts was said yet: it is said again"
    )
    assert is_heard or not saved or word in {b"BEGIN", b"adjourn.add_task"}, (
        "without the word nothing was committed"
    )
    assert has_started(store)
    assert len(tasks(store)) == saved + 1


def has_started(store: PostgresStore) -> bool:
    try:
        desk(store).start()
    except StoreProblem as problem:
        return not any(
            words in problem.sentence for words in ("cannot be reached", "before this was saved")
        )
    return True


def test_a_connection_that_broke_while_nobody_spoke_is_made_again(
    postgres: Server, database: str
) -> None:
    store = PostgresStore(database)
    office = desk(store)
    for _ in range(10):
        end_all(postgres, database)
        office.start()
    assert len(tasks(store)) == 10
    store.close()


def end_all(postgres: Server, database: str) -> None:
    """End every connection that this test has; those who test beside it keep theirs."""
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'adjourn%' AND datname = "
    postgres.do(f"{ending}'{name_of(database)}'")


def name_of(database: str) -> str:
    return str(conninfo_to_dict(database)["dbname"])


def test_an_ear_whose_connection_was_ended_listens_again(postgres: Server, database: str) -> None:
    store = PostgresStore(database)
    ear = store.listen()
    for number in range(5):
        end_all(postgres, database)
        assert is_awake(ear, within=5), (
            "the end of the connection is heard as well: something may have happened"
        )
        ear.drain()
        with store.change() as tx:
            tx.add_task(a_task(f"task-{number}"))
        assert is_awake(ear, within=5)
        ear.drain()
    ear.close()
    store.close()


def test_where_nobody_can_listen_the_ear_stays_silent_and_nothing_else_suffers(
    database: str,
) -> None:
    store = PostgresStore(database, listen_url="postgresql:///nowhere?host=/nonexistent")
    ear = store.listen()
    with store.change() as tx:
        tx.add_task(a_task())
    assert not is_awake(ear, within=0.1)
    assert tasks(store) == ["task-a"]
    ear.close()
    store.close()


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(StoreProblem, match="cannot be reached") as caught:
        PostgresStore("postgresql:///adjourn?host=/nonexistent")
    assert caught.value.exit_code == 1
    assert caught.value.way_out


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(Misuse):
        PostgresStore("postgresql://[")


def test_whoever_is_not_let_in_is_told_and_no_password_is_shown(database: str) -> None:
    url = login_at(database, "nobody", password="secret")  # noqa: S106 -- it is nobody's
    with pytest.raises(StoreRefused, match="does not let us in") as caught:
        PostgresStore(url)
    assert "secret" not in caught.value.sentence + caught.value.way_out


@pytest.fixture
def role(postgres: Server, database: str) -> Iterator[Callable[[str], str]]:
    """Return what makes a role that is no superuser, with some privileges, and its address."""
    tester, name = f"tester_{os.getpid()}", name_of(database)

    def make(words: str) -> str:
        postgres.make_login(tester, words)
        for schema in ("adjourn", "absurd"):
            postgres.do(f"GRANT USAGE ON SCHEMA {schema} TO {tester}", name)
            for things in ("TABLES", "SEQUENCES"):
                postgres.do(f"GRANT ALL ON ALL {things} IN SCHEMA {schema} TO {tester}", name)
        return login_at(database, tester)

    PostgresStore(database).close()
    postgres.do("SELECT adjourn.made_queue('default')", name)
    yield make
    postgres.do(f"DROP OWNED BY {tester}", name)
    postgres.do(f"DROP ROLE {tester}")


def test_a_database_without_a_free_connection_is_told(role: Callable[[str], str]) -> None:
    url = role("CONNECTION LIMIT 1")
    store = PostgresStore(url)
    with pytest.raises(StoreProblem, match="no connection left"):
        PostgresStore(url)
    desk(store).start()
    store.close()
    until(lambda: is_open(url), what="the server has let go of the connection")


def is_open(url: str) -> bool:
    with contextlib.suppress(StoreProblem):
        PostgresStore(url).close()
        return True
    return False


def test_a_database_that_is_read_only_can_be_read_and_is_told(
    role: Callable[[str], str], postgres: Server
) -> None:
    url = role("")
    store = PostgresStore(url)
    task = desk(store).start()
    store.close()
    postgres.do(f"ALTER ROLE tester_{os.getpid()} SET default_transaction_read_only = on")
    store = PostgresStore(url)
    assert tasks(store) == [task.id]
    with pytest.raises(StoreProblem, match="is read-only"):
        desk(store).start()
    store.close()


def test_a_slow_database_costs_time_and_nothing_else(wired: tuple[Wire, PostgresStore]) -> None:
    laid, store = wired
    laid.delay = 0.03
    office = desk(store)
    task, ask = office.waiting()
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
    laid.delay = 0.0
    assert [event.kind for event in office.events(task)].count("ask_approved") == 1


def test_the_clock_is_the_databases_whatever_the_machine_says(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from adjourn.testing.values import a_spec
    from adjourn.wiring import find_root
    from adjourn.wiring.controller import open_controller

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    truth = time.time_ns() // 1_000_000
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3600 * 10**9)
    controller = open_controller(find_root(database))
    task = controller.tasks.start(
        a_spec(workspace=str(tmp_path)), by=Principal(name=f"uid:{os.getuid()}")
    )
    assert abs(task.created_at - truth) < 60_000
    controller.store.close()


@pytest.mark.serial
def test_a_server_that_dies_and_comes_back_has_lost_nothing_that_was_acknowledged() -> None:
    own = own_server("mortal")
    with own.empty_database() as url:
        store = PostgresStore(url)
        office = desk(store)
        known: list[str] = []
        for _ in range(5):
            known += [office.start().id for _ in range(10)]
            own.kill()
            with pytest.raises(StoreProblem, match="cannot be reached"):
                office.start()
            own.start()
            assert set(tasks(store)) == set(known)
        store.close()


def own_server(name: str) -> Server:
    """Return a server that nobody else uses and that may be killed."""
    if os.environ.get("ADJOURN_TEST_POSTGRES"):
        missing("a server that may be killed")
    return server_at(Path(gettempdir()) / f"adjourn-postgres-{name}-{os.getpid()}")

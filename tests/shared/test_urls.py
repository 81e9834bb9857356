"""What names a database may hold a password.

Nothing prints it, and what cannot be used is refused with a sentence.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from adjourn.stores.postgres.store import PostgresStore
from tests.e2e.shell import Shell
from tests.postgres import Server

Words = dict[str, str | int | None]  # as libpq knows what a URL says

CANARY = "cAnArY-hunter2-password"
USES: dict[str, Callable[[Words], str]] = {
    "a user": lambda words: (
        f"postgresql://{words['user']}:{words['password']}@/?{_query(words, without=('user', 'password'))}"
    ),
    "a query": lambda words: f"postgresql:///?{_query(words)}",
}


def _query(words: Words, *, without: tuple[str, ...] = ()) -> str:
    return urlencode({key: value for key, value in words.items() if key not in without})


@pytest.fixture
def login(postgres: Server, database: str) -> Iterator[Words]:
    """Return where the database is, for a login whose password nobody may see."""
    words = conninfo_to_dict(database) | {"user": f"careful_{os.getpid()}", "password": CANARY}
    PostgresStore(database).close()
    postgres.make_login(str(words["user"]), "SUPERUSER")
    postgres.do(f"ALTER ROLE {words['user']} PASSWORD '{CANARY}'")
    yield words
    postgres.do(f"DROP OWNED BY {words['user']}", str(words["dbname"]))
    postgres.do(f"DROP ROLE {words['user']}")


def shell_with(tmp_path: Path, url: str) -> Shell:
    shell = Shell(tmp_path)
    shell.environment |= {"ADJOURN_STORE": url, "XDG_STATE_HOME": str(tmp_path / "state")}
    return shell


@pytest.mark.parametrize("where", USES)
def test_no_verb_prints_a_password_and_no_file_but_one_holds_it(
    login: Words, tmp_path: Path, where: str
) -> None:
    url = USES[where](login)
    shell = shell_with(tmp_path, url)
    script = shell.script("env > environment; [ $AUTO_APPROVAL ] || exit 90; echo deployed")
    task = shell.paused(script)["task_id"]
    ask = shell.inbox()[0]["id"]
    said = [
        shell.adjourn(*words, expect=None)
        for words in (
            ("inbox",),
            ("show", task, "--verbose"),
            ("approve", ask),
            ("resume", task, "--store", url),
            ("show", task, "--store", url),
            ("run", "--store", url, "--", script),
            ("logs", task),
            ("doctor",),
            ("doctor", "--output", "json"),
            ("audit", "verify"),
            ("audit", "export"),
            ("notify",),
            ("rules", "list"),
            ("policy", "explain", "--", "ls"),
            ("worker", "--status"),
            ("worker", "--once"),
            ("store", "backup", "copy.db"),
            ("store", "migrate"),
            ("store", "migrate", "--from", "."),
            ("store", "migrate", "--from", url),
            ("prune", "--older-than", "0"),
            ("tasks", "--store", f"{url}%zz"),
            ("tasks", "--verbose", "--store", url.replace("host=", "hots=")),
            ("tasks", "--store", url.replace("postgresql://", "postgresql+psycopg://")),
        )
    ]
    for done in said:
        done.must(done.code)
        assert CANARY not in done.out + done.err, done.words
    holding = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert {path.name for path in holding} == {"database.json"}
    assert {path.stat().st_mode & 0o777 for path in holding} == {0o600}
    assert shell.end() == {}


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"postgresql://u:{CANARY}@[bad/x", 2),
        (f"postgresql://u:{CANARY}@127.0.0.1:notaport/x", 2),
        (f"postgresql://u:{CANARY}@127.0.0.1:1/x", 1),
        (f"postgresql://u:{CANARY}%@127.0.0.1:1/x", 2),
        (f"postgresql://u:{CANARY} x@127.0.0.1:1/x", 2),
        (f'postgresql://u:" {CANARY}"@127.0.0.1:1/x', 2),
        (f"postgresql://u:@{CANARY}@127.0.0.1:1/x", 2),
        (f"postgresql://u:1/{CANARY}@127.0.0.1:1/x", 2),
        (f"postgresql://127.0.0.1:1/x?{CANARY}", 2),
        (f"postgresql://127.0.0.1:1/x?pasword={CANARY}", 2),
        (f"postgresql+psycopg://u:{CANARY}@127.0.0.1:1/x", 2),
        (f"POSTGRESQL://u:{CANARY}@127.0.0.1:1/x", 2),
        (f"host=127.0.0.1 port=1 password={CANARY}", 2),
        (f"postgresql://u:{CANARY}@127.0.0.1:1,127.0.0.1:2/x", 1),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_its_password(
    tmp_path: Path, url: str, code: int
) -> None:
    shell = shell_with(tmp_path, url)
    for words in (("tasks",), ("run", "--", "touch", "effects")):
        done = shell.adjourn(*words, expect=code)
        assert CANARY not in done.out + done.err
        assert "try: " in done.err
    assert set(os.listdir(tmp_path)) <= {"state"}


def test_of_several_servers_each_is_named_with_its_own_trouble(tmp_path: Path) -> None:
    done = shell_with(tmp_path, "postgresql://127.0.0.1:1,127.0.0.1:2/x").adjourn("tasks", expect=1)
    assert (
        'reached: "127.0.0.1", port 1: Connection refused; "127.0.0.1", port 2: Connection refused\n'
        in done.err
    )


def test_another_password_is_the_same_place(login: Words, postgres: Server, tmp_path: Path) -> None:
    shell = shell_with(tmp_path, USES["a query"](login))
    shell.adjourn("run", "--", "true")
    postgres.do(f"ALTER ROLE {login['user']} PASSWORD 'another'")
    shell.adjourn("tasks", env={"ADJOURN_STORE": USES["a query"](login | {"password": "another"})})
    places = set(os.listdir(tmp_path / "state" / "adjourn")) - {"stores"}
    assert len(places) == 1


@pytest.mark.parametrize("name", ["ADJOURN_LISTEN", "ADJOURN_INSIDE"])
def test_what_is_to_be_a_url_is_one(database: str, tmp_path: Path, name: str) -> None:
    shell = shell_with(tmp_path, database)
    done = shell.adjourn("tasks", env={name: f"host=x password={CANARY}"}, expect=2)
    assert f"try: unset {name}" in done.err
    assert CANARY not in done.err


def test_a_database_is_among_all_stores_after_its_first_write(login: Words, tmp_path: Path) -> None:
    shell = shell_with(tmp_path, USES["a user"](login))
    entries = tmp_path / "state" / "adjourn" / "stores"
    shell.adjourn("inbox")
    assert not entries.exists() or list(entries.glob("*.json")) == []  # it was only looked at
    ask = shell.paused("sh", "-c", "exit 90")["asks"][0]
    (entry,) = entries.glob("*.json")
    assert CANARY not in entry.read_text()
    assert entry.stat().st_mode & 0o077 == 0
    del shell.environment["ADJOURN_STORE"]
    shown = shell.adjourn("inbox", "--everywhere")
    assert ask["id"][:8] in shown.out
    approved = shell.adjourn("approve", ask["id"][:8])
    assert f"store: the database {login['dbname']} at" in approved.out, approved.out
    assert CANARY not in shown.out + approved.out

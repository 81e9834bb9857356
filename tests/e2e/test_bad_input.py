"""Bad input: a clear sentence, the right exit code, nothing lost."""

import re

import pytest

from tests.e2e.shell import Shell
from tests.stores import on_lasting_store

STRANGE = [
    "../../x",
    "--help",
    "-",
    "",
    " ",
    ".",
    "..",
    "/",
    "%",
    "_",
    "*",
    "a" * 5000,
    "nobody",
    "\x1b[31m",
    "\u202e",
    "💥",
    "1",
    "' OR 1=1",
]
BY_TASK = [
    ("show",),
    ("runs",),
    ("logs",),
    ("wait",),
    ("resume",),
    ("restart",),
    ("pause",),
    ("cancel",),
]
BY_ASK = [("approve",), ("reject",)]


@pytest.fixture(scope="module")
def occupied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell whose store has something in it that must not be hit."""
    shell = on_lasting_store(request, Shell(tmp_path_factory.mktemp("occupied")))
    shell.adjourn("run", "--", shell.agent("approved.sh"), expect=10)
    shell.adjourn("run", "--", shell.agent("deploy.sh"), expect=10)
    return shell


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_id_is_not_found(occupied: Shell, name: str) -> None:
    """Exit code 3, whatever it looks like and wherever it is given.

    Nothing is decided, made or followed.
    """
    verbs = (
        [("show",), ("approve",), ("answer",)]
        if name in STRANGE[6:]
        else [*BY_TASK, *BY_ASK, ("answer",)]
    )
    for verb in verbs:
        rest = ["text"] if verb == ("answer",) else []
        told = occupied.adjourn(*verb, "--", name, *rest, expect=3)
        assert "try: adjourn" in told.err
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", told.err)
    assert len(occupied.inbox()) == 2


@pytest.mark.one_machine("a database is there before adjourn is")
def test_a_strange_id_in_a_store_that_is_not_there_makes_none(shell: Shell) -> None:
    for verb in ("show", "approve", "resume", "wait", "logs"):
        told = shell.adjourn(verb, "nobody", expect=3)
        assert "no store" in told.err
    for verb in ("inbox", "tasks"):
        told = shell.adjourn(verb, "--store", "misspelt", expect=3)
        assert f"there is no store at {shell.place}/misspelt" in told.err
    for verb in ("inbox", "tasks", "prune"):
        shell.adjourn(verb)
    assert list(shell.place.iterdir()) == []


def test_an_ambiguous_prefix_names_all_that_it_could_mean(shell: Shell) -> None:
    """Exit code 3, and nothing is decided."""
    names: dict[str, list[str]] = {}
    asks: dict[str, list[str]] = {}
    while not any(len(found) > 1 for found in asks.values()):
        manifest = shell.json("run", "--", "sh", "-c", "exit 90", expect=10)
        names.setdefault(manifest["task_id"][0], []).append(manifest["task_id"])
        asks.setdefault(manifest["asks"][0]["id"][0], []).append(manifest["asks"][0]["id"])
    prefix, several = next((prefix, found) for prefix, found in asks.items() if len(found) > 1)
    told = shell.adjourn("approve", prefix, expect=3)
    assert all(name in told.err for name in several)
    assert shell.json("approve", prefix, expect=3)["error"]["code"] == "ambiguous"
    assert len(shell.inbox()) == sum(map(len, asks.values()))


@pytest.mark.one_machine("a database has its place on this machine once it was named")
def test_a_run_without_a_command_or_without_dashes_says_how_to_say_it(shell: Shell) -> None:
    for words in (("run",), ("run", "--"), ("run", "--", "")):
        assert "adjourn run -- COMMAND" in shell.adjourn(*words, expect=2).err
    assert "adjourn run -- ls -la" in shell.adjourn("run", "ls", "-la", expect=2).err
    assert not shell.store.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--grace", "-1", "--", "true"),
        ("run", "--grace", "soon", "--", "true"),
        ("run", "--grace", "nan", "--", "true"),
        ("run", "--output", "xml", "--", "true"),
        ("tasks", "--limit", "-5"),
        ("tasks", "--state", "happy"),
        ("inbox", "--limit", "1e9"),
        ("wait", "x", "--timeout", "-1"),
        ("prune", "--older-than", "-1"),
        ("prune", "--older-than", "nan"),
        ("prune", "--older-than", "inf"),
        ("settle", "x", "maybe"),
        ("completion", "powershell"),
        ("answer", "x"),
        ("run", "--no-such-option"),
        ("frobnicate",),
        ("store", "frobnicate"),
        ("worker", "--pool"),
        ("inbox", "--snoozed=yes"),
    ],
)
def test_words_that_make_no_sense_are_a_usage_error(shell: Shell, words: tuple[str, ...]) -> None:
    told = shell.adjourn(*words, expect=2)
    verb = words[0].replace("frobnicate", ".*")
    assert re.search(rf"try: adjourn {verb}.*--help", told.err)
    assert told.out == ""


@pytest.mark.one_machine(
    "in PostgreSQL the moments of tasks lie in bodies, where no statement can move them"
)
def test_a_misspelt_verb_and_a_missing_word_are_told_in_one_sentence(shell: Shell) -> None:
    for words, sentence in {
        ("taks",): "there is no verb taks: did you mean tasks?",
        ("store", "bakup"): "Did you mean 'backup'?",
        ("settle", "x"): "Choose from: it-ran, it-did-not, run-again",
        ("completion",): "Choose from: bash, zsh, fish",
        ("config", "--option", "foo=bar"): "the agent has no setting foo; it has base_url",
        (
            "run",
            "--model",
            "openai:x",
            "--max-steps",
            "few",
            "do it",
        ): "max_steps is a whole number, not few",
        (
            "run",
            "--model",
            "openai:x",
            "--on-text",
            "stop",
            "do it",
        ): "on_text is pause or complete, not stop",
        ("run", "--runner", "codex", "--option", "foo=1", "do it"): "Codex has no option foo",
        (
            "run",
            "--runner",
            "codex",
            "--option",
            "on-approve=ask",
            "do it",
        ): "on-approve is repeat or execute, not ask",
        (
            "run",
            "--runner",
            "codex",
            "--option",
            "silence=long",
            "do it",
        ): "silence is a number, not long",
        ("answer", "x"): "give the ask, then the answer",
    }.items():
        assert sentence in shell.adjourn(*words, expect=2).err


@pytest.mark.one_machine("a shared store has roles, and what they need")
def test_roles_are_for_a_database_whether_or_not_its_packages_are_there(shell: Shell) -> None:
    (shell.place / "psycopg.py").write_text('raise ModuleNotFoundError("no", name="psycopg")')
    shell.adjourn("run", "--", "true")
    for words in (("store", "roles"), ("store", "migrate", "--from", ".adjourn")):
        told = shell.adjourn(*words, env={"PYTHONPATH": str(shell.place)}, expect=2)
        assert f"try: adjourn {' '.join(words[:2])}" in told.err
        assert "postgresql://" in told.err


def test_rows_from_the_future_disturb_nobody(shell: Shell) -> None:
    """The clock jumped back: times are shown as now, never negative, and every verb works."""
    manifest = shell.paused(shell.agent("approved.sh"))
    other = shell.json("run", "--", "true")["task_id"]
    shift(shell, years=300)
    for words in (("tasks",), ("inbox",), ("show", other), ("runs", other)):
        said = shell.adjourn(*words).out
        assert (
            "-" not in re.sub(r"\d{4}-\d\d-\d\dT|--\w|-c\b|\./|sha256", "", said)
            or "ago" not in said
        )
    assert shell.json("prune", "--older-than", "0")["pruned"] == []
    assert shell.json("inbox")["asks"][0]["created_at"].startswith("23")
    shell.adjourn("approve", manifest["asks"][0]["id"])
    shell.adjourn("resume", manifest["task_id"])
    assert shell.lines("effects") == ["done with approved"]
    assert shell.runs(manifest["task_id"])[-1]["state"] == "succeeded"


def test_rows_from_the_distant_past_are_just_old(shell: Shell) -> None:
    """The clock jumped forward."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shift(shell, years=-50)
    assert "18262d" in shell.adjourn("inbox").out
    shell.line(manifest["resume_hint"])
    assert shell.lines("effects") == ["done with approved"]


MOMENTS_IN_SQLITE = """
SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
WHERE t.type = 'table' AND t.name NOT LIKE 'event%' AND c.name LIKE '%\\_at' ESCAPE '\\'
"""
MOMENTS_IN_POSTGRES = """
SELECT table_name, column_name FROM information_schema.columns NATURAL JOIN information_schema.tables
WHERE table_schema = 'adjourn' AND table_type = 'BASE TABLE' AND column_name LIKE '%\\_at'
"""


def shift(shell: Shell, *, years: int) -> None:
    """Move every moment that stands in a column of the store."""
    for table, column in shell.sql(MOMENTS_IN_POSTGRES if shell.database else MOMENTS_IN_SQLITE):
        shell.sql(f"UPDATE {table} SET {column} = {column} + {years * 31_557_600_000}")  # noqa: S608 -- our own names


@pytest.mark.one_machine("a shared store is found from anywhere")
def test_a_directory_that_is_gone_is_told(shell: Shell) -> None:
    for words in ("run -- true", "inbox"):
        told = shell.line(f"mkdir gone && cd gone && rmdir ../gone && adjourn {words}", expect=1)
        assert "does not exist any more" in told.err


def test_a_nested_run_in_a_store_that_is_not_its_parents_is_no_defect(shell: Shell) -> None:
    done = shell.adjourn("run", "--", "sh", "-c", "adjourn run --store other -- true; echo $?")
    assert done.out.splitlines()[-1] == "0"


def test_a_workspace_that_is_not_utf8_is_a_workspace(shell: Shell) -> None:
    """Exactly the bytes, in words for people and in JSON for machines."""
    place = bytes(shell.place) + b"/caf\xe9 \x1b[31m"
    shell.run("mkdir", place)
    shell.adjourn("run", "--", "true")
    done = shell.run(
        "sh", "-c", "cd caf*; adjourn run --output json -- sh -c 'pwd > where; exit 90'", expect=10
    )
    task = done.doc["task_id"]
    for verb in ("show", "runs", "tasks", "inbox"):
        words = [task] if verb in {"show", "runs"} else []
        shell.json(verb, *words)
        assert "\x1b" not in shell.adjourn(verb, *words).out
    shell.adjourn("resume", task, "--approve-all", expect=1)
    assert shell.run("sh", "-c", "cat caf*/where").raw == place + b"\n"

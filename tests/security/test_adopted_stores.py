"""Who may take a store that is a copy, what becomes of its approvals, and what a key is good for."""

import os
import shutil
from pathlib import Path

import apsw
import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.one_machine("a database is bound by its logins")
KEY = "0123456789abcdef0123456789abcdef-ci"


@pytest.fixture
def copy(tmp_path: Path) -> Shell:
    """Return a shell in a copy of a place with an approved call."""
    origin = Shell(tmp_path / "origin")
    origin.place.mkdir()
    manifest = origin.paused(origin.agent("approved.sh"))
    origin.adjourn("approve", manifest["asks"][0]["id"])
    shutil.copytree(origin.place, tmp_path / "copied")
    return Shell(tmp_path / "copied")


def test_an_adopted_store_starts_nothing_that_was_approved_elsewhere(copy: Shell) -> None:
    told = copy.adjourn("store", "adopt", "--yes")
    assert "./approved.sh" in told.out
    copy.adjourn("worker", "--once")
    assert copy.lines("effects") == []
    (ask,) = copy.inbox()
    assert ask["kind"] == "uncertain"
    copy.adjourn("run", "--", "true")


def test_adopting_needs_a_yes(copy: Shell) -> None:
    copy.adjourn("store", "adopt", expect=2)
    copy.adjourn("run", "--", "true", expect=5)


def test_a_run_cannot_adopt_a_store(copy: Shell, shell: Shell) -> None:
    done = shell.adjourn(
        "run", "--", "adjourn", "store", "adopt", "--yes", "--store", str(copy.store), expect=1
    )
    assert "inside a run" in done.out + done.err
    copy.adjourn("run", "--", "true", expect=5)


def test_the_original_goes_on_after_its_copy_was_adopted(copy: Shell, tmp_path: Path) -> None:
    copy.adjourn("store", "adopt", "--yes")
    origin = Shell(tmp_path / "origin")
    origin.adjourn("worker", "--once")
    assert origin.lines("effects") == ["done with approved"]


def test_a_store_with_a_trigger_of_somebody_is_not_adopted(copy: Shell) -> None:
    database = apsw.Connection(str(copy.store / "adjourn.db"))
    database.execute(
        "CREATE TRIGGER helpful AFTER INSERT ON call BEGIN UPDATE call SET state = 'approved' WHERE no = new.no; END"
    )
    database.close()
    told = copy.adjourn("store", "adopt", "--yes", expect=5)
    assert "trigger helpful" in told.err


def test_an_empty_database_that_somebody_prepared_is_not_bound_by_itself(copy: Shell) -> None:
    """It holds no task: a trigger in it would approve the first that comes."""
    for table in ("task", "call", "ask", "event", "shared_document"):
        copy.sql(f"DELETE FROM {table}")  # noqa: S608 -- names of our own
    copy.adjourn("run", "--", "touch", "effects", expect=5)


def test_a_store_that_was_moved_goes_on(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "here"
    place.mkdir()
    shell.adjourn("run", "--", "true", cwd=place)
    place.rename(tmp_path / "there")
    shell.adjourn("run", "--", "true", cwd=tmp_path / "there")
    shutil.copytree(tmp_path / "there", place)
    shell.adjourn("run", "--", "true", cwd=place, expect=5)
    shell.adjourn("run", "--", "true", cwd=tmp_path / "there")


def test_another_user_state_directory_makes_it_foreign(shell: Shell, tmp_path: Path) -> None:
    shell.adjourn("run", "--", "true")
    shell.adjourn("run", "--", "true", expect=5, env={"XDG_STATE_HOME": str(tmp_path / "another")})
    shell.adjourn("tasks", env={"XDG_STATE_HOME": str(tmp_path / "another")})


def test_a_key_that_others_could_have_written_does_not_count(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    (key,) = Path(shell.environment["XDG_STATE_HOME"]).glob("adjourn/stores/*/key.json")
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    key.chmod(0o644)
    shell.adjourn("run", "--", "true", expect=5)


def test_a_person_at_a_terminal_is_asked(copy: Shell) -> None:
    with Terminal(copy, "store", "adopt") as terminal:
        terminal.sees("Adopt it?")
        terminal.type(b"y\n")
        assert terminal.ends() == 0
    copy.adjourn("run", "--", "true")


# --- jobs that carry a store ----------------------------------------------------------------------


def test_a_job_on_another_machine_goes_on_with_the_key_and_only_with_it(
    shell: Shell, tmp_path: Path
) -> None:
    """A-R75: the first job pauses, the next one has the store from an artifact.

    No person is needed to take it.
    """
    first = {"ADJOURN_STORE_KEY": KEY}
    agent = shell.agent("approved.sh")
    manifest = shell.json("run", "--", agent, expect=10, env=first)
    shell.line("tar -cf ../store.tar --exclude='*.lock' .adjourn approved.sh")
    machine = tmp_path / "machine"
    machine.mkdir()
    shell.line(f"tar -xf ../store.tar -C {machine}")
    other = {"XDG_STATE_HOME": str(tmp_path / "other-state")}
    words = ("resume", manifest["task_id"], "--approve-all")
    shell.adjourn(*words, cwd=machine, env=other, expect=5)
    shell.adjourn(*words, cwd=machine, env=other | {"ADJOURN_STORE_KEY": KEY[::-1]}, expect=5)
    (tmp_path / "key").write_text(f"{KEY}\n")
    shell.adjourn(*words, "--key-file", str(tmp_path / "key"), cwd=machine, env=other)
    assert shell.lines("effects") == ["done with approved"]  # in the workspace that the task has


def test_the_key_is_neither_in_the_store_nor_in_a_run_nor_in_the_state(shell: Shell) -> None:
    env = {"ADJOURN_STORE_KEY": KEY}
    script = shell.script('env; tr "\\0" "\\n" < /proc/self/environ; adjourn run -- env')
    done = shell.adjourn("run", "--", script, env=env)
    assert "ADJOURN_STORE_KEY" not in done.out
    assert KEY not in done.out
    for path in (*shell.store.rglob("*"), *Path(shell.environment["XDG_STATE_HOME"]).rglob("*")):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_the_key_is_redacted(shell: Shell) -> None:
    document = shell.json(
        "run", "--", "sh", "-c", f"exit 90 # {KEY}", expect=10, env={"ADJOURN_STORE_KEY": KEY}
    )
    assert KEY not in str(document)


def test_a_short_key_is_refused(shell: Shell) -> None:
    shell.adjourn("run", "--", "true", env={"ADJOURN_STORE_KEY": "guessable"}, expect=2)


def test_a_key_file_that_is_missing_is_refused(shell: Shell) -> None:
    shell.adjourn("run", "--key-file", "nowhere", "--", "true", expect=2)


# --- inside a run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "home", ["HOME=/nonexistent", "XDG_STATE_HOME=/nonexistent", "-u HOME -u XDG_STATE_HOME"]
)
def test_a_script_with_another_home_asks_and_starts_tasks_of_its_own(
    shell: Shell, home: str
) -> None:
    script = shell.script(f"env {home} adjourn run -- true && env {home} adjourn ask 'Where?'")
    manifest = shell.json("run", "--", script, expect=10)
    shell.adjourn("answer", manifest["asks"][0]["id"], "here")
    shell.adjourn("resume", manifest["task_id"])


def test_a_script_that_cannot_see_the_state_directory_asks_and_starts_nothing(shell: Shell) -> None:
    hidden = "env ADJOURN_STATE=/nonexistent"
    script = shell.script(
        f"{hidden} adjourn run -- touch effects; echo $? >> codes; {hidden} adjourn ask 'Where?'"
    )
    manifest = shell.json("run", "--", script, expect=10)
    assert shell.lines("codes") == ["5"]
    assert not (shell.place / "effects").exists()
    shell.adjourn("answer", manifest["asks"][0]["id"], "here")
    shell.adjourn("resume", manifest["task_id"])


def test_root_of_another_user_is_still_refused(shell: Shell) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    shell.store.mkdir(mode=0o700)
    os.chown(shell.store, 54321, 54321)
    shell.adjourn("run", "--", "true", expect=5)

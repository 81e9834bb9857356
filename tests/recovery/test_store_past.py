"""A store that lost its newest past, as from a restored backup.

What ran since then must not run again.
"""

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.e2e.shell import Shell

pytestmark = pytest.mark.one_machine("it restores the file of the database")

# Asks a question, then for approval of itself; its one effect comes after both.
AGENT = """
where=$(adjourn ask "Where?") || exit $?
[ "$AUTO_APPROVAL" ] || exit 90
echo "$ADJOURN_RUN_ID" >> effects
"""
# Loaded into every process of ours: copies the database after each commit, before anybody hears of
# it.
COPIER = """
import os, time
if place := os.environ.get("BACKUPS"):
    import apsw
    import adjourn.stores.sqlite.store as store
    wake_all = store.wake_all
    def copy_and_wake(directory):
        source = apsw.Connection(os.path.join(os.path.dirname(directory), "adjourn.db"))
        target = apsw.Connection(f"{place}/{time.time_ns()}.db")
        with target.backup("main", source, "main") as backup:
            backup.step(-1)
        target.execute("PRAGMA journal_mode = DELETE")
        target.close()
        source.close()
        wake_all(directory)
    store.wake_all = copy_and_wake
"""


class Life:
    """Two tasks from their beginning to their end, with the database as it was after each commit."""

    def __init__(self, shell: Shell, place: Path) -> None:
        self.shell = shell
        self.state = Path(shell.environment["XDG_STATE_HOME"])
        self._seen = place / "seen"
        self._place = place / "backups"
        (place / "observer").mkdir(parents=True)
        (place / "observer" / "sitecustomize.py").write_text(COPIER)
        self._place.mkdir()
        self._live(shell, {"BACKUPS": str(self._place), "PYTHONPATH": str(place / "observer")})
        self.backups = sorted(self._place.iterdir())
        shutil.copytree(self.state, self._seen)
        self.effects = shell.lines("effects")

    def _live(self, shell: Shell, env: dict[str, str]) -> None:
        agent = shell.script(AGENT, name="agent.sh")
        for way in (("resume", "TASK"), ("worker", "--once")):
            paused = shell.json("run", "--pause-on-approval", "--", agent, expect=10, env=env)
            words = [word.replace("TASK", paused["task_id"]) for word in way]
            shell.adjourn("approve", paused["asks"][0]["id"], env=env)
            shell.adjourn(*words, env=env, expect=None)
            (question,) = shell.inbox()
            shell.adjourn("answer", question["id"], "here", env=env)
            shell.adjourn(*words, env=env, expect=None)
            (approval,) = shell.inbox()
            shell.adjourn("approve", approval["id"], env=env)
            shell.adjourn(*words, env=env)
            assert shell.state(paused["task_id"]) == "succeeded"

    def restore(self, backup: Path) -> None:
        """Put a backup in the place of the database, as the documentation says, with what this machine has seen since."""
        for path in self.shell.store.glob("adjourn.db*"):
            path.unlink()
        shutil.copy(backup, self.shell.store / "adjourn.db")
        (self.shell.store / "adjourn.db").chmod(0o600)
        shutil.copytree(self._seen, self.state, dirs_exist_ok=True)


def test_a_restored_backup_of_any_commit_starts_nothing_twice(
    shell: Shell, tmp_path: Path, sweep: str
) -> None:
    """At every commit of a task's life.

    Refused as it is, and once accepted nothing starts without a person.
    """
    life = Life(shell, tmp_path / "life")
    assert len(life.backups) >= 32
    assert len(life.effects) == 2
    share = life.backups if sweep == "full" else life.backups[::5]
    for backup in share[:-1]:
        life.restore(backup)
        told = shell.adjourn("worker", "--once", expect=5)
        assert "adjourn store accept" in told.err
        shell.adjourn("tasks")
        shell.adjourn("store", "accept", "--yes")
        shell.adjourn("worker", "--once")
        assert shell.lines("effects") == life.effects, backup
        assert shell.adjourn("audit", "verify").out.startswith("Whole")
    life.restore(life.backups[-1])
    shell.adjourn("worker", "--once")


@pytest.fixture
def restored(shell: Shell, tmp_path: Path) -> Shell:
    """Return a shell whose store was restored from before an approved command ran."""
    manifest = shell.paused(shell.agent("approved.sh"))
    waits = shell.paused(shell.agent("approved.sh"))
    shell.adjourn("approve", manifest["asks"][0]["id"])
    shell.adjourn("store", "backup", str(tmp_path / "monday.db"))
    shell.adjourn("resume", manifest["task_id"])
    shell.adjourn("resume", waits["task_id"], "--approve-all")
    assert len(shell.lines("effects")) == 2
    shell.run(
        "sh",
        "-c",
        "rm .adjourn/adjourn.db* && cp monday.db .adjourn/adjourn.db && chmod 600 .adjourn/adjourn.db",
    )
    return shell


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "--once"),
        ("run", "--", "touch", "effects"),
        ("resume", "APPROVED"),
        ("restart", "APPROVED"),
        ("approve", "ASK"),
        ("reject", "ASK"),
        ("cancel", "APPROVED"),
    ],
)
def test_a_restored_store_changes_nothing_before_it_is_accepted(
    restored: Shell, words: tuple[str, ...]
) -> None:
    (ask,) = restored.inbox()
    approved = next(task for task in restored.json("tasks")["tasks"] if task["state"] == "queued")[
        "task_id"
    ]
    before = restored.lines("effects")
    known = {"ASK": ask["id"], "APPROVED": approved}
    told = restored.adjourn(*(known.get(word, word) for word in words), expect=5)
    assert "adjourn store accept" in told.err
    assert restored.lines("effects") == before


@pytest.mark.parametrize("proof", ["kept", "lost"])
def test_what_may_have_run_since_a_backup_is_asked_about(restored: Shell, proof: str) -> None:
    (old,) = restored.inbox()
    told = restored.adjourn("store", "accept", "--yes")
    assert "of the" in told.out
    assert "./approved.sh" in told.out
    asks = {ask["kind"]: ask for ask in restored.inbox()}
    assert set(asks) == {"uncertain", "approval"}
    assert (
        "may have been approved and run"
        in restored.adjourn("show", asks["approval"]["task_id"]).out
    )
    restored.adjourn("approve", old["id"], expect=4)
    restored.adjourn("resume", asks["approval"]["task_id"], "--approve-all", expect=None)
    assert len(restored.lines("effects")) == 2
    lost = asks["uncertain"]["task_id"]
    restored.adjourn("settle", f"{lost}.tc_2", "it-ran")
    assert restored.state(lost) == "succeeded"
    restored.adjourn("worker", "--once")
    assert len(restored.lines("effects")) == 2
    if proof == "lost":
        for name in ("runs", "started"):
            shutil.rmtree(restored.store / name)
    restored.adjourn("approve", asks["approval"]["id"])
    restored.adjourn("worker", "--once")
    # A person has decided, and was told. Where the files of the run still prove that it ran, it
    # does not run even so.
    assert restored.state(asks["approval"]["task_id"]) == "succeeded"
    assert len(restored.lines("effects")) == (2 if proof == "kept" else 3)


def test_accepting_needs_a_person_and_something_that_is_missing(restored: Shell) -> None:
    restored.adjourn("store", "accept", expect=2)
    restored.adjourn("run", "--", "true", expect=5)
    restored.adjourn("store", "accept", "--yes")
    restored.adjourn("store", "accept", "--yes", expect=4)
    restored.adjourn("run", "--", "true")


def test_a_run_cannot_accept_a_restored_store(restored: Shell) -> None:
    env = {"ADJOURN_RUN_ID": "sldkfjsldkfjsldkfj.1"}
    restored.adjourn("store", "accept", "--yes", env=env, expect=5)
    restored.adjourn("run", "--", "true", expect=5)


@pytest.mark.parametrize("damage", ["lost", "torn", "empty", "another user could write it"])
def test_what_was_seen_is_not_taken_for_nothing_when_it_is_damaged(
    shell: Shell, damage: str
) -> None:
    shell.adjourn("run", "--", "true")
    (seen,) = Path(shell.environment["XDG_STATE_HOME"]).glob("adjourn/stores/*/seen")
    match damage:
        case "lost":
            seen.unlink()
        case "torn":
            seen.write_bytes(seen.read_bytes()[:40] + bytes(552))
        case "empty":
            seen.write_bytes(b"")
        case _:
            seen.chmod(0o666)
    shell.adjourn("run", "--", "true", expect=5)
    shell.adjourn("store", "accept", "--yes")
    shell.adjourn("run", "--", "true")


def test_an_older_log_is_noticed_as_an_older_database_is(shell: Shell) -> None:
    """Nobody has the store open.

    The log with the newest decision is removed, as by a careless cleaning.
    """
    manifest = shell.paused(shell.agent("approved.sh"))
    with sqlite3.connect(shell.store / "adjourn.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shell.adjourn("approve", manifest["asks"][0]["id"])
    for companion in ("-wal", "-shm"):
        (shell.store / f"adjourn.db{companion}").unlink(missing_ok=True)
    told = shell.adjourn("approve", manifest["asks"][0]["id"], expect=5)
    assert "adjourn store accept" in told.err


def test_a_mark_that_was_half_written_leaves_the_one_before(shell: Shell) -> None:
    """A process was killed, or the power failed, while it wrote down a commit that it had not acknowledged."""
    shell.adjourn("run", "--", "true")
    (seen,) = Path(shell.environment["XDG_STATE_HOME"]).glob("adjourn/stores/*/seen")
    content = seen.read_bytes()
    newer = max((0, 512), key=lambda slot: content[slot + 8 : slot + 16][::-1])
    seen.write_bytes(content[: newer + 40] + bytes(40) + content[newer + 80 :])
    shell.adjourn("run", "--", "true")

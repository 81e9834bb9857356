"""A store that was set back, by a backup or by a lost log, starts nothing a second time: the files of the run prove it.

Such a store is refused as a whole until it is accepted (`test_store_past.py`). What is shown here has to hold without that,
so the tests let this machine forget what it has seen of the store: then the store looks as if it were the newest.
"""

import os
import shutil
import signal
import struct
import time
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from adjourn.core.trail.events import GENESIS
from tests.e2e.shell import Shell, until

pytestmark = pytest.mark.one_machine("it is about the files of an embedded store")

COMPANIONS = ("", "-wal", "-shm")


def backup(shell: Shell, name: str) -> None:
    """Copy the store as `docs/how-to/operate-the-store.md` says."""
    shell.adjourn("store", "backup", name)


def restore(shell: Shell, name: str) -> None:
    """Put a backup in the place of the database, as if it were the newest.

    What runs have left stays.
    """
    for suffix in COMPANIONS:
        (shell.store / f"adjourn.db{suffix}").unlink(missing_ok=True)
    shutil.copy(shell.place / name, shell.store / "adjourn.db")
    (shell.store / "adjourn.db").chmod(0o600)
    forget_what_was_seen(shell)


def forget_what_was_seen(shell: Shell) -> None:
    """Let the machine know of no event of the store, so that the store does not look older than it was."""
    nothing = b"adjourn1" + struct.pack("<Q", 0) + GENESIS
    (seen,) = Path(shell.environment["XDG_STATE_HOME"]).glob("adjourn/stores/*/seen")
    seen.write_bytes((nothing + sha256(nothing).digest()).ljust(1024, b"\0"))


def gated(shell: Shell, *words: str) -> str:
    """Return a task whose command waits at the gate and notes each of its starts."""
    work = 'echo start >> starts; sleep ${NAP-0}; while [ -n "$UNTIL" ] && [ ! -e "$UNTIL" ]; do sleep 0.05; done'
    script = shell.script(work, name="work.sh")
    task: str = shell.json("run", "--pause-on-approval", "--", *words, script, expect=10)["task_id"]
    return task


def test_a_restored_approval_does_not_run_what_ran(shell: Shell) -> None:
    """The attack of the backup: approved on Monday, run on Monday, restored on Tuesday."""
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    shell.adjourn("resume", task)
    restore(shell, "monday.db")
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start"]
    assert shell.state(task) == "succeeded"
    shell.adjourn("worker", "--once")
    assert shell.lines("starts") == ["start"]
    assert "Whole" in shell.adjourn("audit", "verify").out


def test_a_worker_does_not_run_it_either(shell: Shell) -> None:
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    shell.adjourn("worker", "--once")
    restore(shell, "monday.db")
    for _ in range(3):
        shell.adjourn("worker", "--once")
    assert shell.lines("starts") == ["start"]
    assert shell.state(task) == "succeeded"


def test_what_left_no_result_is_uncertain(shell: Shell) -> None:
    """Its mark says that it was started, and nothing says how it ended."""
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    shell.adjourn("resume", task)
    (shell.store / "runs" / f"{task}.2" / "result.json").unlink()
    restore(shell, "monday.db")
    shell.adjourn("resume", task, expect=10)
    (ask,) = shell.inbox()
    assert ask["kind"] == "uncertain"
    assert "before the store was set back" in ask["prompt"]
    assert shell.lines("starts") == ["start"]
    shell.adjourn("settle", f"{task}.tc_1", "run-again")
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start"] * 2


def test_a_result_alone_is_proof_enough(shell: Shell) -> None:
    """A run of an older version left no mark."""
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    shell.adjourn("resume", task)
    shutil.rmtree(shell.store / "started")
    restore(shell, "monday.db")
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start"]
    assert shell.state(task) == "succeeded"


def test_a_mark_alone_is_proof_enough(shell: Shell) -> None:
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    shell.adjourn("resume", task)
    shutil.rmtree(shell.store / "runs")
    restore(shell, "monday.db")
    shell.adjourn("resume", task, expect=10)
    assert shell.inbox()[0]["kind"] == "uncertain"
    assert shell.lines("starts") == ["start"]


def test_a_name_that_another_run_left_is_given_again(shell: Shell) -> None:
    """After the restore the person decides otherwise.

    The new command has the number of the old run, and starts, once.
    """
    task = gated(shell)
    ask = shell.inbox()[0]["id"]
    backup(shell, "monday.db")
    shell.adjourn("approve", ask)
    shell.adjourn("resume", task)
    restore(shell, "monday.db")
    shell.adjourn("reject", ask)
    shell.adjourn("restart", task, expect=10)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start"] * 2
    shell.adjourn("prune", "--older-than", "0")
    assert list((shell.store / "runs").iterdir()) == []
    assert list((shell.store / "started").iterdir()) == []


def test_what_still_runs_is_neither_killed_nor_started_beside(shell: Shell) -> None:
    task = gated(shell, "env", "UNTIL=go")
    shell.adjourn("approve", shell.inbox()[0]["id"])
    backup(shell, "monday.db")
    with shell.start("resume", task) as running:
        until(lambda: bool(shell.lines("starts")), what="it runs")
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
    restore(shell, "monday.db")
    said = shell.adjourn("resume", task, expect=4)
    assert "still runs" in said.err
    shell.adjourn("worker", "--once")
    os.kill(shell.shim(f"{task}.2"), 0)
    (shell.place / "go").touch()
    until((shell.store / "runs" / f"{task}.2" / "result.json").exists, what="it has ended")
    time.sleep(0.2)
    shell.adjourn("resume", task)
    assert shell.state(task) == "succeeded"
    assert shell.lines("starts") == ["start"]


@pytest.mark.parametrize("damage", ["removed", "cut", "emptied"])
def test_a_lost_log_starts_nothing_twice(shell: Shell, damage: str) -> None:
    """The `-wal` file goes away while the command runs, and with it the newest changes."""
    task = gated(shell, "env", "NAP=1")
    shell.adjourn("approve", shell.inbox()[0]["id"])
    _checkpoint(shell)
    with shell.start("resume", task) as running:
        until(lambda: bool(shell.lines("starts")), what="it runs")
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
        log = shell.store / "adjourn.db-wal"
        size = log.stat().st_size
        if damage == "removed":
            log.unlink()
        else:
            os.truncate(log, size // 2 if damage == "cut" else 0)
        (shell.store / "adjourn.db-shm").unlink()
    assert "adjourn store accept" in shell.adjourn("worker", "--once", expect=5).err
    forget_what_was_seen(shell)
    for _ in range(20):
        shell.adjourn("worker", "--once", expect=None)
        if shell.state(task) in {"succeeded", "waiting"}:
            break
        time.sleep(0.2)
    assert shell.lines("starts") == ["start"]
    assert shell.state(task) == "succeeded"


def _checkpoint(shell: Shell) -> None:
    """Have the log hold nothing that is not in the database."""
    shell.sql("PRAGMA wal_checkpoint(TRUNCATE)")


# A gate, questions, an approval of its own: each start under another call id.
LIFE = """
echo $ADJOURN_CALL_ID >> starts
for question in {questions}; do
    [ -e asked.$question ] || {{ touch asked.$question; adjourn ask "$question?" || exit 10; }}
done
[ -n "$AUTO_APPROVAL" ] || exit 90
"""
QUESTIONS = {"ci": ("Which",), "full": ("Which", "Where", "When", "Who", "Why", "Whence")}
COMMITS = {"ci": 12, "full": 32}  # at least


@pytest.mark.timeout(1800)
def test_set_back_to_every_commit_of_its_life_no_call_starts_twice(
    shell: Shell, sweep: str
) -> None:
    """A copy of the store after each commit of a task's life.

    Each is restored, and gone on with to the end.
    """
    place = shell.place / "copies"
    place.mkdir()
    questions = QUESTIONS[sweep]
    task, copies = _copied_life(shell, place, questions)
    assert len(set(shell.lines("starts"))) == len(shell.lines("starts")) == 2 + len(questions)
    assert len(copies) >= COMMITS[sweep]
    seen = copies if sweep == "full" else copies[:: len(copies) // 3]
    for copy in seen:
        restore(shell, str(copy.relative_to(shell.place)))
        _go_on(shell, task)
        starts = shell.lines("starts")
        assert len(set(starts)) == len(starts), f"after {copy.name}: {starts}"
    print(
        f"set back to {len(seen)} of {len(copies)} commits: {len(shell.lines('starts'))} starts, 0 of them double"
    )


def _copied_life(shell: Shell, place: Path, questions: tuple[str, ...]) -> tuple[str, list[Path]]:
    """Let a task live, and return the store as it was after each commit since it first paused.

    A view that stays open keeps the log from beginning again, so that the log has all of them.
    """
    shell.adjourn("run", "--", "true")  # makes the store
    view = apsw.Connection(str(shell.store / "adjourn.db"))
    view.execute("BEGIN; SELECT count(*) FROM task").fetchall()
    script = shell.script(LIFE.format(questions=" ".join(questions)), name="work.sh")
    task: str = shell.json("run", "--pause-on-approval", "--", script, expect=10)["task_id"]
    first = len(_commits(shell.store / "adjourn.db-wal"))
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task, expect=10)
    for _ in questions:
        shell.adjourn("answer", shell.inbox()[0]["id"], "this")
        shell.adjourn("resume", task, expect=10)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task)
    log = (shell.store / "adjourn.db-wal").read_bytes()
    copies: list[Path] = []
    for number, end in enumerate(_commits(shell.store / "adjourn.db-wal")[first:]):
        shutil.copy(shell.store / "adjourn.db", place / "part")
        (place / "part-wal").write_bytes(log[:end])
        copies.append(place / f"{number:04}.db")
        whole, copy = (apsw.Connection(str(path)) for path in (place / "part", copies[-1]))
        with copy.backup("main", whole, "main") as backup:
            backup.step(-1)
        whole.close()
        copy.close()
        for name in place.glob("part*"):
            name.unlink()
    view.close()
    return task, copies


def _commits(log: Path) -> list[int]:
    """Return where in a write-ahead log each of its commits ends."""
    content = log.read_bytes()
    page, salts = struct.unpack_from(">I", content, 8)[0], content[16:24]
    ends: list[int] = []
    for begin in range(32, len(content) - 24 - page + 1, 24 + page):
        if content[begin + 8 : begin + 16] != salts:
            break
        if content[begin + 4 : begin + 8] != b"\0\0\0\0":  # how large the database is by then
            ends.append(begin + 24 + page)
    return ends


def _go_on(shell: Shell, task: str) -> None:
    """Do all that a person would do until the task has ended, or waits for a word on what became of it."""
    for _ in range(20):
        shell.adjourn("tasks")
        asks = shell.inbox()
        if shell.state(task) == "succeeded" or any(ask["kind"] == "uncertain" for ask in asks):
            return
        for ask in asks:
            words = (
                ("approve", ask["id"])
                if ask["kind"] == "approval"
                else ("answer", ask["id"], "this")
            )
            shell.adjourn(*words)
        shell.adjourn("resume", task, expect=None)
    raise AssertionError(f"it does not end: {shell.json('show', task)}")


def test_a_lost_run_that_is_to_run_again_does_so_and_nobody_is_asked(shell: Shell) -> None:
    """Not a fault: the store knows of the start that the mark stands for."""
    task = shell.detached("sh", "-c", "echo start >> starts; [ -e sure ] || sleep 60")
    until(lambda: bool(shell.lines("starts")), what="it works")
    os.kill(shell.shim(f"{task}.1"), signal.SIGKILL)
    shell.adjourn("wait", task, expect=10)
    shell.adjourn("settle", f"{task}.tc_1", "run-again")
    (shell.place / "sure").touch()
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start"] * 2


@pytest.mark.one_machine("the folder of marks is on this machine")
@pytest.mark.parametrize("verb", ["resume", "worker"])
def test_an_approved_task_whose_start_cannot_be_marked_stays_queued(
    shell: Shell, verb: str
) -> None:
    """A file where the folder of marks should be is no fault of the task: its approval is kept."""
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90; echo ran >> effects')[
        "task_id"
    ]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    folder = shell.store / "started"
    folder.rename(shell.place / "kept")
    folder.write_text("no folder")
    for _ in range(4):
        words = ("worker", "--once") if verb == "worker" else ("resume", task)
        refused = shell.adjourn(*words, expect=1)
        assert "could not be marked on disk: Not a directory" in refused.err
        assert shell.state(task) == "queued"
    folder.unlink()
    (shell.place / "kept").rename(folder)
    shell.adjourn("resume", task)
    assert shell.lines("effects") == ["ran"]

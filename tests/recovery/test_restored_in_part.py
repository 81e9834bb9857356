"""One part of what adjourn keeps is restored from an older backup, or the clock is set back.

Nothing runs twice, nothing is lost without a word.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell, until
from tests.needs import missing, needs

ONCE = '[ "$AUTO_APPROVAL" ] || exit 90; echo "$ADJOURN_TASK_ID" >> effects'
on_one_machine = pytest.mark.one_machine("it restores files of the store")


def restore(kept: Path, place: Path) -> None:
    """Put a directory back as it was."""
    shutil.rmtree(place)
    shutil.copytree(kept, place, symlinks=True)


def approved(shell: Shell) -> str:
    paused: Document = shell.paused("sh", "-c", ONCE)
    shell.adjourn("approve", paused["asks"][0]["id"])
    task: str = paused["task_id"]
    return task


# --- only runs/ ---------------------------------------------------------------------------------------


@on_one_machine
def test_older_runs_beside_a_newer_store_start_nothing_twice(shell: Shell, tmp_path: Path) -> None:
    """The store knows of runs whose files are gone, or are those of an earlier moment."""
    done, waits = approved(shell), approved(shell)
    shutil.copytree(shell.store / "runs", tmp_path / "kept")
    shell.adjourn("resume", done)
    restore(tmp_path / "kept", shell.store / "runs")
    shell.adjourn("worker", "--once")
    shell.adjourn("worker", "--once")
    assert sorted(shell.lines("effects")) == sorted([done, waits])
    assert shell.state(done) == shell.state(waits) == "succeeded"
    shell.adjourn("logs", done)
    assert "Whole" in shell.adjourn("audit", "verify").out


@on_one_machine
@pytest.mark.parametrize("ending", ["alive", "ended"])
def test_a_run_whose_files_were_replaced_is_uncertain_and_not_started_beside(
    shell: Shell, tmp_path: Path, ending: str
) -> None:
    shell.adjourn("run", "--", "true")
    shutil.copytree(shell.store / "runs", tmp_path / "kept")
    command = 'echo "$ADJOURN_TASK_ID" >> effects; while [ ! -e go ]; do sleep 0.05; done'
    task = shell.detached("sh", "-c", command)
    until(lambda: bool(shell.lines("effects")), what="it works")
    os.kill(shell.supervisor(f"{task}.1"), signal.SIGKILL)
    if ending == "ended":
        (shell.place / "go").touch()
        until((shell.store / "runs" / f"{task}.1" / "result.json").exists, what="it has ended")
    restore(tmp_path / "kept", shell.store / "runs")
    for _ in range(2):
        shell.adjourn("worker", "--once")
    (ask,) = shell.inbox()
    assert (ask["kind"], ask["task_id"]) == ("uncertain", task)
    (shell.place / "go").touch()
    assert shell.lines("effects") == [task]
    shell.adjourn("settle", f"{task}.tc_1", "it-ran")
    assert shell.state(task) == "succeeded"


# --- the user's state directory -----------------------------------------------------------------------


@on_one_machine
def test_an_older_state_directory_beside_a_newer_store_changes_nothing(
    shell: Shell, tmp_path: Path
) -> None:
    """What this machine remembers is true of the store still, only not the newest."""
    task = approved(shell)
    state = Path(shell.environment["XDG_STATE_HOME"])
    shutil.copytree(state, tmp_path / "kept")
    shell.adjourn("resume", task)
    restore(tmp_path / "kept", state)
    shell.adjourn("worker", "--once")
    other = approved(shell)
    shell.adjourn("worker", "--once")
    assert shell.lines("effects") == [task, other]


@on_one_machine
def test_an_older_state_directory_and_an_older_store_start_nothing_twice(
    shell: Shell, tmp_path: Path
) -> None:
    """Both agree about the past. What was started has its mark beside the store."""
    task = approved(shell)
    state = Path(shell.environment["XDG_STATE_HOME"])
    shutil.copytree(state, tmp_path / "kept")
    shell.adjourn("store", "backup", "monday.db")
    shell.adjourn("resume", task)
    restore(tmp_path / "kept", state)
    shell.line("rm .adjourn/adjourn.db* && cp monday.db .adjourn/adjourn.db")
    for _ in range(2):
        shell.adjourn("worker", "--once")
    assert shell.lines("effects") == [task]
    assert shell.state(task) == "succeeded"


# --- overlays -----------------------------------------------------------------------------------------

# Mounts an overlay over the project, with the store in its lower layer, and forgets what it wrote.
OVERLAY = """
mount -t tmpfs upper "$0" && mkdir "$0/upper" "$0/work" || exit 99
mount -t overlay overlay -o "lowerdir=$PWD,upperdir=$0/upper,workdir=$0/work" "$PWD" || exit 99
cd "$PWD" && adjourn worker --once; code=$?
[ ! -e effects ] || cat effects
exit $code
"""


@on_one_machine
def test_two_overlays_over_one_store_start_an_approved_call_once(
    shell: Shell, tmp_path: Path
) -> None:
    """Both have the same path and the same numbers of files; what the first did is gone."""
    task = approved(shell)
    (tmp_path / "upper").mkdir()
    words = (needs("unshare"), "-Urm", "sh", "-c", OVERLAY, str(tmp_path / "upper"))
    first, second = (shell.run(*words, expect=None) for _ in range(2))
    if first.code == 99:
        missing("the right to mount an overlay in a user namespace")
    # The second is refused: as a copy, or because it lacks what the first has done
    assert first.out.split() in ([], [task])
    assert second.must(5).out == ""
    assert "adjourn store a" in second.err


@on_one_machine
def test_a_store_in_an_overlay_works_as_any_other(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "upper").mkdir()
    (tmp_path / "lower").mkdir()
    work = "adjourn run --detach -- sh -c 'echo ran >> effects' && adjourn worker --once"
    text = OVERLAY.replace("lowerdir=$PWD", f"lowerdir={tmp_path}/lower")
    words = ("-Urm", "sh", "-c", text.replace("adjourn worker --once", work))
    done = shell.run(needs("unshare"), *words, str(tmp_path / "upper"), expect=None)
    if done.code == 99:
        missing("the right to mount an overlay in a user namespace")
    assert done.must(0).out.splitlines()[1:] == ["ran"]


# --- the clock ----------------------------------------------------------------------------------------

# Loaded into the processes of ours that a person starts, and so into the forks of a worker
SET_BACK = """
import os, time
if back := int(os.environ.get("SET_BACK", "0")):
    really, really_ns = time.time, time.time_ns
    time.time = lambda: really() - back
    time.time_ns = lambda: really_ns() - back * 1_000_000_000
"""
HOUR, YEAR = 3600, 365 * 24 * 3600


@pytest.mark.parametrize("seconds", [HOUR, YEAR])
def test_a_clock_that_is_set_back_loses_nothing_and_starts_nothing_twice(
    shell: Shell, tmp_path: Path, seconds: int
) -> None:
    """One task is approved before, one runs meanwhile, one waits with a deadline, one is queued again."""
    place = tmp_path / "clock"
    place.mkdir()
    (place / "sitecustomize.py").write_text(SET_BACK)
    before = approved(shell)
    running = shell.detached(
        "sh", "-c", 'echo "$ADJOURN_TASK_ID" >> effects; while [ ! -e go ]; do sleep 0.05; done'
    )
    waits = shell.json("run", "--expires-after", "2h", "--", "sh", "-c", ONCE, expect=10)
    shell.adjourn("snooze", waits["asks"][0]["id"], "--for", "1h")
    os.kill(shell.supervisor(f"{running}.1"), signal.SIGKILL)

    shell.environment |= {"SET_BACK": str(seconds), "PYTHONPATH": str(place)}
    shell.adjourn("tasks")
    (shell.place / "go").touch()
    shell.adjourn("worker", "--once")
    until(lambda: shell.state(running) == "succeeded", what="it has ended")
    assert "1 snoozed" in shell.adjourn("inbox").out
    shell.adjourn("approve", waits["asks"][0]["id"])
    for _ in range(2):
        shell.adjourn("worker", "--once")
    assert sorted(shell.lines("effects")) == sorted([before, running, waits["task_id"]])
    after = approved(shell)
    shell.adjourn("worker", "--once")
    assert shell.lines("effects")[3:] == [after]
    assert "Whole" in shell.adjourn("audit", "verify").out

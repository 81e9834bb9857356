"""Looking after the store: prune, backup; and the shell's completion."""

import os
import shutil
import sqlite3
import stat

import pytest

from tests.e2e.shell import Shell, until
from tests.needs import needs


def test_prune_forgets_what_ended_with_its_files_and_nothing_else(shell: Shell) -> None:
    good = shell.json("run", "--", "true")["task_id"]
    waiting = shell.paused(shell.agent("approved.sh"))["task_id"]
    assert shell.json("prune")["pruned"] == [], "not so soon"
    would = {"schema_version": 1, "pruned": [good], "locks_removed": 0, "dry_run": True}
    assert shell.json("prune", "--older-than", "0", "--dry-run") == would
    assert shell.state(good) == "succeeded"
    assert shell.json("prune", "--older-than", "0")["pruned"] == [good]
    shell.adjourn("show", good, expect=3)
    assert [task["task_id"] for task in shell.json("tasks")["tasks"]] == [waiting]
    assert {path.name for path in (shell.store / "runs").iterdir()} == {f"{waiting}.1"}
    assert {path.name for path in (shell.store / "session").iterdir()} == {waiting, "pause.json"}
    shell.adjourn("resume", waiting, "--approve-all")


def test_prune_takes_every_file_of_a_task_away(shell: Shell) -> None:
    """Requests, checkpoints, responses, manifests and output; what is another task's stays."""
    other = shell.json("run", "--", "python3", shell.agent("researcher.py"), "0", expect=10)[
        "task_id"
    ]
    gone = shell.json("run", "--", "python3", "researcher.py", "0", expect=10)["task_id"]
    for task in (other, gone):
        (shell.store / "clarifications" / f"{task}.response.yaml").write_text(
            "agent_id: x\nresume_signal: true\n"
        )
    shell.adjourn("tasks")
    shell.adjourn("cancel", gone)
    assert shell.json("prune", "--older-than", "0")["pruned"] == [gone]
    left = [str(path.relative_to(shell.store)) for path in shell.store.rglob("*")]
    assert [path for path in left if gone in path] == []
    assert "session/pause.json" not in left, "it was about the one that is gone"
    for path in (
        f"clarifications/{other}.needed.yaml",
        f"checkpoints/{other}.checkpoint.json",
        f"runs/{other}.1/stdout",
    ):
        assert path in left
    assert f"clarifications/{other}.refused.json" in left


def test_prune_takes_the_output_of_an_agents_calls_away(shell: Shell) -> None:
    """Each attempt at a call beside an agent has a directory of its own, `runs/TASK.tc_M.K`."""
    gone, kept = (shell.json("run", "--", "true")["task_id"] for _ in range(2))
    for task in (gone, f"{kept[:-1]}_"):
        (shell.store / "runs" / f"{task}.tc_1.2").mkdir()
        (shell.store / "runs" / f"{task}.tc_1.2" / "stdout").write_text("a secret")
    assert gone in shell.json("prune", "--older-than", "0")["pruned"]
    assert [path.name for path in (shell.store / "runs").iterdir()] == [f"{kept[:-1]}_.tc_1.2"]


def test_prune_keeps_a_child_that_its_parent_still_needs(shell: Shell) -> None:
    shell.agent("approved.sh")
    parent = shell.paused(
        shell.script("adjourn run -- true; adjourn run -- ./approved.sh || exit $?")
    )["task_id"]
    assert shell.json("prune", "--older-than", "0")["pruned"] == []
    (ask,) = shell.inbox()
    shell.adjourn("resume", ask["task_id"], "--approve-all")
    assert shell.json("prune", "--older-than", "0")["pruned"] == []
    shell.adjourn("resume", parent)
    assert len(shell.json("prune", "--older-than", "0")["pruned"]) == 3


def test_a_backup_is_a_whole_store_as_of_one_moment(shell: Shell) -> None:
    """Taken while the store is in use, private, and usable in the place of the original."""
    manifest = shell.paused(shell.agent("approved.sh"))
    assert shell.adjourn("store", "backup", "copy.db", "--output", "json").doc["backup"] == str(
        shell.place / "copy.db"
    )
    copy = shell.place / "copy.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with sqlite3.connect(copy) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    shell.adjourn("resume", manifest["task_id"], "--approve-all")
    place = shell.place / "restored"
    place.mkdir(mode=0o700)
    copy.rename(place / "adjourn.db")
    restored = shell.json("inbox", "--store", str(place))["asks"]
    assert [ask["id"] for ask in restored] == [manifest["asks"][0]["id"]]
    shell.adjourn("audit", "verify", "--store", str(place))


def test_a_backup_never_writes_over_anything(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    (shell.place / "precious").write_text("precious")
    (shell.place / "link").symlink_to("precious")
    (shell.place / "dangling").symlink_to("nowhere")
    for target in ("precious", "link", "dangling", "."):
        assert "exists already" in shell.adjourn("store", "backup", target, expect=4).err
    assert (shell.place / "precious").read_text() == "precious"
    told = shell.adjourn("store", "backup", "no/such/folder/copy", expect=None)
    assert told.must(told.code).code != 0


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_the_line_for_each_shell(shell: Shell, name: str) -> None:
    assert f"{name}_source" in shell.adjourn("completion", name).out


def test_completion_works_in_bash(shell: Shell) -> None:
    bash = needs("bash")
    line = """
    eval "$(adjourn completion bash)"
    complete() { COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _adjourn_completion adjourn; echo "${COMPREPLY[@]}"; }
    complete adjourn re
    complete adjourn resume --app
    """
    verbs, options = shell.run(bash, "-c", line).out.splitlines()
    assert set(verbs.split()) == {"reject", "resume", "restart"}
    assert set(options.split()) == {"--approve", "--approve-all"}


def test_the_help_shows_every_flag_of_the_contract(shell: Shell) -> None:
    """A-R89, as far as commands go."""
    text = shell.adjourn("resume", "--help").out
    for flag in (
        "--approve",
        "--reject",
        "--approve-all",
        "--reject-all",
        "--answer",
        "--value",
        "--detach",
    ):
        assert flag in text
    assert (
        "\\b"
        not in shell.adjourn("--help").out
        + shell.adjourn("ask", "--help").out
        + shell.adjourn("settle", "--help").out
    )


def test_the_demo_leaves_nothing_behind(shell: Shell) -> None:
    (shell.place / "tmp").mkdir()
    said = shell.adjourn("demo", env={"TMPDIR": str(shell.place / "tmp")}).out
    for words in ("exit code 10", "pause.json", "adjourn inbox", "approved with 'yes'"):
        assert words in said
    assert list((shell.place / "tmp").iterdir()) == []
    assert shell.database or not shell.store.exists()
    assert shell.json("tasks")["tasks"] == []


@pytest.mark.one_machine("it copies the directory of the store")
def test_whoever_looks_at_a_copy_leaves_alone_what_the_store_runs(shell: Shell) -> None:
    """It knows the same runs by the same names, and is not the store that they belong to."""
    task = shell.detached("sleep", "60")
    until(lambda: shell.state(task) == "running", what="it runs")
    shutil.copytree(shell.store, shell.place / "copy", ignore=shutil.ignore_patterns("wake"))
    assert shell.json("show", task, "--store", "copy")["state"] == "running"
    shell.adjourn("cancel", task, "--store", "copy", expect=5)
    shell.adjourn("store", "adopt", "--yes", "--store", "copy")
    assert shell.json("show", task, "--store", "copy")["state"] == "waiting"
    assert shell.state(task) == "running"
    os.kill(shell.shim(f"{task}.1"), 0)
    shell.adjourn("cancel", task)
    until(lambda: shell.state(task) == "canceled", what="it was canceled")

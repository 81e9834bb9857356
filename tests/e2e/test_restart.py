"""Restart, workspaces, and the records of runs."""

import re

from tests.e2e.shell import Shell, until

RECORD = {
    "run_id",
    "task_id",
    "state",
    "provider",
    "resumable",
    "repo_root",
    "created_at",
    "updated_at",
}
SOMETIMES = {
    "ended_at",
    "plan",
    "plan_task_id",
    *(
        "provider_session_ref",
        "paused_at",
        "pause_reason",
        "resumed_from_run_id",
        "restart_of_run_id",
        "superseded_by_run_id",
    ),
    *("checkpoint_id", "exit_code", "signal", "message"),
}


def test_a_restart_is_a_new_run_with_a_new_session_and_the_history_stays(shell: Shell) -> None:
    """D-R28, D-R31, D-R32, D-R40, D-R65: the old run stays paused, and each names the other."""
    manifest = shell.paused(shell.agent("approved.sh"))
    task = manifest["task_id"]
    again = shell.json("restart", task, expect=10)
    assert again["task_id"] == task
    assert again["session_id"] != manifest["session_id"]
    old, new = shell.runs(task)
    assert (old["state"], old["superseded_by_run_id"]) == ("waiting", new["run_id"])
    assert new["restart_of_run_id"] == old["run_id"]
    assert "resumed_from_run_id" not in new
    assert shell.adjourn("logs", task, "--run", "1").code == 0


def test_a_restart_asks_again_what_was_answered_before(shell: Shell) -> None:
    """D-R28, D-R31: it starts from the task's own command, and no earlier reply counts."""
    task = shell.paused(shell.agent("deploy.sh"))["task_id"]
    shell.adjourn("resume", task, "eu", expect=10)
    again = shell.json("restart", task, expect=10)
    assert again["pause_reason"]["type"] == "input_required"
    assert shell.lines("effects") == []
    shell.adjourn("resume", task, "us", expect=10)
    assert shell.lines("effects") == []


def test_nothing_restarts_by_itself(shell: Shell) -> None:
    """D-R30, D-R64: a resume that is not possible says `restart`, and does not do it."""
    task = shell.json("run", "--", "false", expect=1)["task_id"]
    told = shell.adjourn("resume", task, expect=4)
    assert f"adjourn restart {task}" in told.err
    assert len(shell.runs(task)) == 1
    shell.adjourn("restart", task, expect=1)
    assert len(shell.runs(task)) == 2


def test_a_running_task_cannot_be_restarted(shell: Shell) -> None:
    task = shell.detached("sleep", "300")
    told = shell.adjourn("restart", task, expect=4)
    assert "running" in told.err
    shell.adjourn("cancel", task)


def test_a_workspace_that_moved_cannot_be_resumed(shell: Shell) -> None:
    """D-R26, D-R27, D-R53, D-R63, D-R64.

    Exit code 6; it names task, run, runner, place and restart, and nothing is decided.
    """
    (shell.place / "work").mkdir()
    shell.adjourn("run", "--", "true")
    shell.script("touch ready; [ -e ../go ] || sleep 300")
    waiting = shell.adjourn(
        "run", "--output", "json", "--", "sh", "-c", "exit 90", cwd=shell.place / "work", expect=10
    ).doc
    paused = shell.adjourn(
        "run", "--detach", "--", "../script.sh", cwd=shell.place / "work"
    ).out.strip()
    until((shell.place / "work" / "ready").exists, what="it works")
    shell.adjourn("pause", paused)
    (shell.place / "work").rename(shell.place / "moved")
    for words in (
        ("resume", paused),
        ("resume", waiting["task_id"], "--approve-all"),
        ("-c", waiting["checkpoint_id"]),
    ):
        told = shell.adjourn(*words, expect=6)
        assert str(shell.place / "work") in told.err
        task = paused if paused in words else waiting["task_id"]
        assert f"task {task} (run {task}.1, command) cannot be resumed: its workspace" in told.err
        assert re.search(r"adjourn restart \w{26}", told.err)
    assert len(shell.inbox()) == 1
    (shell.place / "go").touch()
    shell.adjourn("restart", paused, cwd=shell.place / "moved")
    roots = [run["repo_root"] for run in shell.runs(paused)]
    assert roots == [str(shell.place / "work"), str(shell.place / "moved")], (
        "D-R41: each run says where it ran itself"
    )


def test_a_workspace_that_was_approved_and_then_moved_is_refused_too(shell: Shell) -> None:
    """D-R26: also when the decision came first."""
    (shell.place / "work").mkdir()
    shell.adjourn("run", "--", "true")
    task = shell.adjourn(
        "run", "--output", "json", "--", "sh", "-c", "exit 90", cwd=shell.place / "work", expect=10
    ).doc["task_id"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    (shell.place / "work").rename(shell.place / "moved")
    shell.adjourn("resume", task, expect=6)
    assert shell.state(task) == "queued"


def test_a_run_record_has_the_fields_and_names_of_the_contract(shell: Shell) -> None:
    """D-R33, D-R34, D-R36 to D-R42: exactly these keys; what is empty is left out."""
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    shell.adjourn("resume", task, "--approve-all")
    shell.adjourn("restart", task, expect=10)
    one, two, three = shell.runs(task)
    for run in (one, two, three):
        assert set(run) >= RECORD
        assert set(run) <= RECORD | SOMETIMES
        assert None not in run.values()
        assert run["task_id"] == task
        assert run["repo_root"] == str(shell.place)
        assert run["updated_at"] >= run["created_at"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", run["created_at"])
    assert [run["state"] for run in (one, two, three)] == ["waiting", "succeeded", "waiting"]
    assert [run["resumable"] for run in (one, two, three)] == [False, False, True]
    assert (one["pause_reason"], one["exit_code"]) == ("tool_approval_required", 90)
    assert (two["resumed_from_run_id"], two["superseded_by_run_id"]) == (
        one["run_id"],
        three["run_id"],
    )
    assert "paused_at" not in two


def test_runs_shows_how_each_came_from_another(shell: Shell) -> None:
    """D-R43, D-R49: state and whether it can be resumed, for people."""
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    shell.adjourn("restart", task, expect=10)
    text = shell.adjourn("runs", task).out
    head, one, two, *total = text.splitlines()
    assert total[-1].startswith("In all: worked ")
    assert head.split() == ["RUN", "STATE", "STARTED", "TOOK", "EXIT", "RESUMABLE", "NOTE"]
    assert "superseded by run 2" in one
    assert "restart of run 1" in two
    assert " yes " in two

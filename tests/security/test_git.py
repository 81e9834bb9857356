"""Nothing that a repository configures for git is run: git is never started."""

from tests.e2e.shell import Shell


def test_no_verb_runs_git_in_a_repository(shell: Shell) -> None:
    shell.run("git", "init", "-q", ".")
    shell.run("git", "config", "core.fsmonitor", f"touch {shell.place}/ran")
    fakes = shell.place / "fakes"
    fakes.mkdir()
    for name in ("git", "ssh", "gpg"):
        path = fakes / name
        path.write_text(f"#!/bin/sh\ntouch '{shell.place}/ran'\n")
        path.chmod(0o700)
    shell.environment["PATH"] = f"{fakes}:{shell.environment['PATH']}"
    manifest = shell.paused(shell.agent("approved.sh"))
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    for words in (
        ("show", task),
        ("inbox",),
        ("tasks",),
        ("runs", task),
        ("doctor",),
        ("policy", "explain", "--", "ls"),
    ):
        shell.adjourn(*words, expect=None)
    shell.adjourn("approve", ask)
    shell.adjourn("worker", "--once")
    assert shell.state(task) == "succeeded"
    assert not (shell.place / "ran").exists()

"""A gate in front of any program.

Judged before anything starts, approved bytes start once, and changed ones do not.
"""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shell import Document, Shell, until

NEVER = '[[rule]]\nargs = ["*", "**"]\naction = "never"\n'
AUTO = '[[rule]]\nargs = ["./script.sh", "**"]\naction = "auto"\n'


def users_policy(shell: Shell, text: str) -> None:
    place = shell.place / ".config" / "adjourn"
    place.mkdir(parents=True, exist_ok=True)
    (place / "policy.toml").write_text(text)


def projects_policy(shell: Shell, text: str) -> None:
    (shell.project / "policy.toml").write_text(text)


def gated(shell: Shell, *command: str, expect: int = 10) -> Document:
    return shell.json("run", "--pause-on-approval", "--", *command, expect=expect)


def noted(shell: Shell) -> str:
    """Put a script into the directory that notes down every start, and what it was given."""
    return shell.script('echo "start $* $AUTO_APPROVAL" >> starts')


def approve(shell: Shell, manifest: Document) -> None:
    shell.adjourn("approve", manifest["asks"][-1]["id"])


# --- before anything starts -----------------------------------------------------------------------


def test_a_command_that_needs_approval_pauses_before_anything_of_it_starts(shell: Shell) -> None:
    """A-R13, A-R70, A-R79."""
    manifest = gated(shell, noted(shell), "--env", "prod")
    assert shell.lines("starts") == []
    assert manifest["outcome"] == "paused"
    assert manifest["pause_reason"]["type"] == "tool_approval_required"
    (call,) = manifest["pause_reason"]["pending_tool_calls"]
    assert call["arguments"]["argv"] == ["./script.sh", "--env", "prod"]
    assert (shell.store / "session" / "pause.json").exists()
    assert shell.processes() == {}


def test_an_approved_command_starts_once_exactly_as_it_was_shown(shell: Shell) -> None:
    """A-R43, A-R69: nothing is added, and the approval serves once."""
    manifest = gated(shell, noted(shell), "--env", "prod")
    approve(shell, manifest)
    assert shell.json("resume", manifest["task_id"])["outcome"] == "completed"
    assert shell.lines("starts") == ["start --env prod "]
    shell.adjourn("resume", manifest["task_id"], expect=4)
    shell.adjourn("approve", manifest["asks"][0]["id"], expect=4)
    assert len(shell.lines("starts")) == 1


def test_the_hint_of_a_gated_command_works_as_printed(shell: Shell) -> None:
    """A-R29, A-R75."""
    shell.line(gated(shell, noted(shell))["resume_hint"])
    assert len(shell.lines("starts")) == 1


def test_a_rejected_command_never_starts(shell: Shell) -> None:
    manifest = gated(shell, noted(shell))
    shell.adjourn("reject", manifest["asks"][0]["id"], "--reason", "not today")
    told = shell.json("resume", manifest["task_id"], expect=4)
    assert "failed" in told["error"]["message"]
    assert shell.state(manifest["task_id"]) == "failed"
    assert shell.lines("starts") == []


def test_a_value_makes_no_sense_to_a_command_that_has_not_started(shell: Shell) -> None:
    manifest = gated(shell, noted(shell))
    told = shell.adjourn("approve", manifest["asks"][0]["id"], "--value", "sure", expect=2)
    assert "takes no value" in told.err
    assert len(shell.inbox()) == 1


def test_without_the_flag_a_command_runs_and_is_marked(shell: Shell) -> None:
    """A-R78, part 2 row 26: prompt runs, and the trail says that nobody was asked."""
    users_policy(shell, '[[rule]]\nargs = ["./script.sh", "**"]\naction = "prompt"\n')
    task = shell.json("run", "--", noted(shell))["task_id"]
    assert len(shell.lines("starts")) == 1
    assert "judged prompt" in shell.adjourn("show", task).out


def test_without_a_policy_and_the_flag_nothing_is_different(shell: Shell) -> None:
    """A-R81: what worked before works as it did; nobody is asked, and nothing is added."""
    task = shell.json("run", "--", noted(shell), "--env", "prod")["task_id"]
    assert shell.lines("starts") == ["start --env prod "]
    assert "judged" not in shell.adjourn("show", task).out
    assert shell.inbox() == []


# --- what the policy says -------------------------------------------------------------------------


def test_what_the_policy_lets_run_runs_at_once(shell: Shell) -> None:
    """A-R69."""
    users_policy(shell, AUTO)
    assert gated(shell, noted(shell), expect=0)["outcome"] == "completed"
    assert len(shell.lines("starts")) == 1


@pytest.mark.parametrize("never", ["pause", "reject"])
@pytest.mark.parametrize("flag", [(), ("--pause-on-approval",)])
def test_what_may_never_run_does_not(shell: Shell, never: str, flag: tuple[str, ...]) -> None:
    """A-R71, part 2 rows 10 and 26.

    It pauses if it may and is rejected else; either way nothing starts.
    """
    users_policy(shell, f'never = "{never}"\n{NEVER}')
    pauses = flag and never == "pause"
    manifest = shell.json("run", *flag, "--", noted(shell), expect=10 if pauses else 1)
    assert manifest["outcome"] == ("paused" if pauses else "failed")
    assert shell.lines("starts") == []
    if not pauses:
        assert "policy never allows" in manifest["error"]["message"]


def test_what_may_never_run_must_be_named(shell: Shell) -> None:
    """Part 2 row 10: --approve-all never covers it."""
    users_policy(shell, NEVER)
    manifest = gated(shell, noted(shell))
    told = shell.adjourn("-c", manifest["checkpoint_id"], "--approve-all", expect=5)
    assert "--approve-all does not cover" in told.err
    assert shell.lines("starts") == []
    shell.adjourn("-c", manifest["checkpoint_id"], "--approve", "tc_1", "--override", "because")
    assert len(shell.lines("starts")) == 1


def test_a_tools_own_exit_90_is_never_approved_by_a_policy(shell: Shell) -> None:
    users_policy(shell, '[[rule]]\nargs = ["./approved.sh", "**"]\naction = "auto"\n')
    manifest = gated(shell, shell.agent("approved.sh"))
    assert len(shell.lines("starts")) == 1
    assert shell.lines("effects") == []
    approve(shell, manifest)
    shell.adjourn("resume", manifest["task_id"])
    assert shell.lines("effects") == ["done with approved"]


def test_the_approval_of_a_start_is_not_that_of_an_exit_90(shell: Shell) -> None:
    first = gated(shell, shell.agent("approved.sh"))
    approve(shell, first)
    second = shell.json("resume", first["task_id"], expect=10)
    assert shell.lines("effects") == []
    approve(shell, second)
    shell.adjourn("resume", first["task_id"])
    assert shell.lines("effects") == ["done with approved"]


def test_a_project_can_only_tighten(shell: Shell) -> None:
    users_policy(shell, AUTO)
    projects_policy(shell, '[[rule]]\nargs = ["./script.sh", "**"]\naction = "prompt"\n')
    gated(shell, noted(shell))
    assert shell.lines("starts") == []


@pytest.mark.parametrize(
    "text", [AUTO, "[[rule]\n", "surprise = 1\n", '[[notify]]\ncommand = ["touch", "starts"]\n']
)
def test_a_projects_policy_that_is_wrong_or_loosens_lets_nothing_run(
    shell: Shell, text: str
) -> None:
    projects_policy(shell, text)
    told = shell.adjourn("run", "--", noted(shell), expect=2)
    assert "policy.toml" in told.err
    assert shell.lines("starts") == []


def test_a_policy_that_breaks_while_a_task_waits_lets_nothing_run(shell: Shell) -> None:
    manifest = gated(shell, noted(shell))
    approve(shell, manifest)
    projects_policy(shell, "[[rule]\n")
    shell.adjourn("resume", manifest["task_id"], expect=2)
    assert shell.lines("starts") == []
    (shell.project / "policy.toml").unlink()
    shell.adjourn("resume", manifest["task_id"])
    assert len(shell.lines("starts")) == 1


# --- what changed between showing and running -----------------------------------------------------


def _write(path: str, text: str) -> Callable[[Shell], Any]:
    return lambda shell: (shell.place / path).write_text(text)


def _replace_the_program(shell: Shell) -> None:
    shell.script('echo "start evil" >> starts')


def _point_elsewhere(shell: Shell) -> None:
    (shell.place / "link").unlink()
    (shell.place / "link").symlink_to("other.tf")


def _swap_the_directory(shell: Shell) -> None:
    (shell.place / "modules").rename(shell.place / "old")
    shutil.copytree(shell.place / "old", shell.place / "modules")
    (shell.place / "modules" / "vpc.tf").write_text("evil")


def _make_a_directory(shell: Shell) -> None:
    (shell.place / "main.tf").unlink()
    (shell.place / "main.tf").mkdir()


CHANGES: dict[str, Callable[[Shell], Any]] = {
    "the program": _replace_the_program,
    "an operand": _write("main.tf", "evil"),
    "an operand after an equals sign": _write("vars.tf", "evil"),
    "an operand is gone": lambda shell: (shell.place / "main.tf").unlink(),
    "an operand is there now": _write("later.tf", "new"),
    "an operand is a directory now": _make_a_directory,
    "where a link leads": _point_elsewhere,
    "a file in a subdirectory": _swap_the_directory,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_changes_between_decision_and_start_is_asked_again(
    shell: Shell, change: Callable[[Shell], Any]
) -> None:
    """What was shown is what runs: the ask is withdrawn, and a new one names what is different."""
    for name in ("main.tf", "vars.tf", "other.tf"):
        (shell.place / name).write_text(f"# {name}")
    (shell.place / "link").symlink_to("main.tf")
    (shell.place / "modules").mkdir()
    (shell.place / "modules" / "vpc.tf").write_text("good")
    words = ("main.tf", "-var-file=vars.tf", "later.tf", "link", "modules/vpc.tf")
    first = gated(shell, noted(shell), *words)
    approve(shell, first)
    change(shell)
    second = shell.json("resume", first["task_id"], expect=10)
    assert shell.lines("starts") == []
    (old, new) = (shell.adjourn("show", first["task_id"], "--full").out, second["asks"][-1])
    assert new["id"] != first["asks"][-1]["id"]
    assert f"replaces {first['asks'][-1]['id']}" in old
    told = shell.adjourn("approve", first["asks"][-1]["id"], expect=4)
    assert new["id"] in told.err
    approve(shell, second)
    shell.adjourn("resume", first["task_id"])
    assert len(shell.lines("starts")) == 1


def test_another_program_of_that_name_on_the_path_is_asked_again(shell: Shell) -> None:
    first, second = shell.place / "first", shell.place / "second"
    for place in (first, second):
        place.mkdir()
    shell.script('echo "start good" >> starts', name="second/tool")
    path = os.pathsep.join([str(first), str(second), shell.environment["PATH"]])
    manifest = shell.json("run", "--pause-on-approval", "--", "tool", expect=10, env={"PATH": path})
    approve(shell, manifest)
    shell.script('echo "start evil" >> starts', name="first/tool")
    shell.adjourn("resume", manifest["task_id"], expect=10, env={"PATH": path})
    assert shell.lines("starts") == []


def test_the_interpreter_of_a_script_is_part_of_the_call(shell: Shell) -> None:
    shutil.copy("/bin/sh", shell.place / "interpreter")
    script = shell.place / "tool"
    script.write_text(f"#!{shell.place}/interpreter\necho start >> starts\n")
    script.chmod(0o700)
    manifest = gated(shell, "./tool")
    approve(shell, manifest)
    with (shell.place / "interpreter").open("ab") as file:
        file.write(b"changed")
    shell.adjourn("resume", manifest["task_id"], expect=10)
    assert shell.lines("starts") == []


def test_a_tool_that_changed_after_it_asked_is_asked_again(shell: Shell) -> None:
    """Its own exit 90 is bound to what it was when it asked."""
    first = shell.paused(shell.agent("approved.sh"))
    approve(shell, first)
    with (shell.place / "approved.sh").open("a") as file:
        file.write("echo more >> effects\n")
    second = shell.json("resume", first["task_id"], expect=10)
    assert len(shell.lines("starts")) == 1
    approve(shell, second)
    shell.adjourn("resume", first["task_id"])
    assert shell.lines("effects") == ["done with approved", "more"]


def test_a_worker_asks_again_as_a_person_would(shell: Shell) -> None:
    manifest = gated(shell, noted(shell))
    approve(shell, manifest)
    _replace_the_program(shell)
    shell.adjourn("worker", "--once")
    assert shell.lines("starts") == []
    (ask,) = shell.inbox()
    assert ask["task_id"] == manifest["task_id"]
    assert ask["id"] in (shell.store / "session" / manifest["task_id"] / "pause.json").read_text()


# --- when the policy changes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code"),
    [('action = "never"', 10), ("signed = true", 10), ("not_requester = true", 10)],
    ids=str,
)
def test_a_policy_that_is_stricter_now_counts(shell: Shell, rule: str, code: int) -> None:
    manifest = gated(shell, noted(shell))
    approve(shell, manifest)
    users_policy(shell, f'[[rule]]\nargs = ["*", "**"]\n{rule}\n')
    again = shell.json("resume", manifest["task_id"], expect=code)
    assert again["asks"][-1]["id"] != manifest["asks"][0]["id"]
    assert shell.lines("starts") == []


def test_a_policy_that_is_weaker_now_does_not_count(shell: Shell) -> None:
    """A-R79, part 2 row 1: a resume is never weaker than the start was."""
    manifest = gated(shell, noted(shell))
    users_policy(shell, AUTO)
    shell.json("resume", manifest["task_id"], expect=10)
    assert shell.lines("starts") == []


def test_a_policy_that_says_reject_now_ends_a_task_that_was_approved(shell: Shell) -> None:
    manifest = gated(shell, noted(shell))
    approve(shell, manifest)
    users_policy(shell, f'never = "reject"\n{NEVER}')
    shell.json("resume", manifest["task_id"], expect=1)
    assert shell.state(manifest["task_id"]) == "failed"
    assert shell.lines("starts") == []


def test_a_policys_expiry_is_a_rejection(shell: Shell) -> None:
    users_policy(shell, '[[rule]]\nargs = ["*", "**"]\nexpires_after = "1s"\n')
    manifest = gated(shell, noted(shell))
    until(lambda: shell.state(manifest["task_id"]) == "failed", what="it has expired")
    assert shell.lines("starts") == []


# --- a command that goes on -----------------------------------------------------------------------


def test_an_interrupted_command_needs_a_new_approval(shell: Shell) -> None:
    """An approval is spent by its start, whatever became of it."""
    script = shell.script("echo start >> starts; sleep 60")
    manifest = gated(shell, script)
    approve(shell, manifest)
    running = shell.start("resume", manifest["task_id"])
    until(lambda: bool(shell.lines("starts")), what="it has started")
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 10
    running.communicate()
    again = shell.json("resume", manifest["task_id"], expect=10)
    assert [ask["state"] for ask in again["asks"]] == ["pending"]
    assert len(shell.lines("starts")) == 1
    shell.json("restart", manifest["task_id"], expect=10)
    assert len(shell.lines("starts")) == 1


def test_a_command_that_left_to_ask_goes_on_under_its_approval(shell: Shell) -> None:
    script = shell.script(
        'echo start >> starts; region=$(adjourn ask "Which region?") || exit $?; echo "$region" >> effects'
    )
    manifest = gated(shell, script)
    approve(shell, manifest)
    asked = shell.json("resume", manifest["task_id"], expect=10)
    shell.adjourn("-c", asked["checkpoint_id"], "eu")
    assert shell.lines("effects") == ["eu"]


def test_a_command_that_changed_while_it_waited_for_an_answer_is_asked_again(shell: Shell) -> None:
    script = shell.script(
        'echo start >> starts; region=$(adjourn ask "Which region?") || exit $?; echo "$region" >> effects'
    )
    manifest = gated(shell, script)
    approve(shell, manifest)
    asked = shell.json("resume", manifest["task_id"], expect=10)
    with Path(shell.place / "script.sh").open("a") as file:
        file.write("echo evil >> effects\n")
    shell.adjourn("-c", asked["checkpoint_id"], "eu", expect=10)
    assert shell.lines("effects") == []

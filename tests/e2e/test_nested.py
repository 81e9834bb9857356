"""A script under adjourn that starts tasks of its own."""

import pytest

from tests.e2e.shell import Document, Shell, until


def family(shell: Shell) -> tuple[Document, Document]:
    """Run a parent whose child pauses; return how both stand."""
    shell.agent("approved.sh")
    parent = shell.paused(shell.agent("parent.sh"))
    (ask,) = shell.inbox()
    return parent, shell.json("show", ask["task_id"])


def test_a_parent_waits_on_its_child_and_has_no_ask_of_its_own(shell: Shell) -> None:
    parent, child = family(shell)
    assert parent["state"] == "waiting"
    assert parent["asks"] == []
    assert parent["waiting_on"] == [child["task_id"]]
    listed = {task["task_id"]: task for task in shell.json("tasks")["tasks"]}
    assert listed[child["task_id"]]["parent_run_id"] == parent["run_id"]


def test_a_parent_that_waits_says_on_what_and_how_to_go_on(shell: Shell) -> None:
    """Every pause prints the exact next command."""
    parent, child = family(shell)
    text = shell.adjourn("resume", parent["task_id"], expect=10).out
    assert (
        f"adjourn show {child['task_id']}" in text or f"adjourn resume {child['task_id']}" in text
    )
    assert f"adjourn resume {parent['task_id']}" in text


def test_the_child_runs_once_and_the_parent_goes_on_after_it(shell: Shell) -> None:
    """A-R56: the parent's script starts again from its beginning; its child does not."""
    parent, child = family(shell)
    shell.adjourn("-c", child["checkpoint_id"], "--approve-all")
    assert shell.state(parent["task_id"]) == "queued"
    shell.adjourn("resume", parent["task_id"])
    assert shell.lines("effects") == ["done with approved", "parent is done"]
    assert [line.split()[0] for line in shell.lines("starts")] == [
        "parent",
        "start",
        "start",
        "parent",
    ]
    assert len(shell.json("tasks")["tasks"]) == 2


def test_a_child_that_fails_is_the_parents_to_judge(shell: Shell) -> None:
    parent, child = family(shell)
    shell.adjourn("reject", child["asks"][0]["id"])
    done = shell.json("resume", parent["task_id"], expect=1)
    assert "exit code 1" in done["error"]["message"]
    assert shell.lines("effects") == []


def test_each_of_several_equal_children_is_its_own_task(shell: Shell) -> None:
    """The n-th start of the same command is the n-th child."""
    shell.agent("approved.sh")
    parent = shell.paused(
        shell.script("for n in 1 2; do adjourn run -- ./approved.sh || exit $?; done")
    )
    for _ in range(2):
        (ask,) = shell.inbox()
        shell.adjourn("approve", ask["id"])
        shell.adjourn("resume", ask["task_id"])
        shell.adjourn("resume", parent["task_id"], expect=None)
    assert shell.state(parent["task_id"]) == "succeeded"
    assert shell.lines("effects") == ["done with approved", "done with approved"]
    assert len(shell.json("tasks")["tasks"]) == 3


def test_a_parent_may_start_several_children_before_it_leaves(shell: Shell) -> None:
    shell.agent("approved.sh")
    script = shell.script(
        "adjourn run -- ./approved.sh 10; a=$?; adjourn run -- ./approved.sh 90; b=$?; [ $a$b = 00 ] || exit 10; echo both"
    )
    parent = shell.paused(script)
    assert len(parent["waiting_on"]) == 2
    one, two = shell.inbox()
    shell.adjourn("resume", one["task_id"], "--approve-all")
    assert shell.state(parent["task_id"]) == "waiting"
    shell.adjourn("resume", two["task_id"], "--approve-all")
    assert shell.adjourn("resume", parent["task_id"]).out.endswith("both\n")
    assert len(shell.lines("effects")) == 2


def test_a_grandchild_wakes_its_whole_line(shell: Shell) -> None:
    shell.agent("approved.sh")
    shell.agent("parent.sh")
    oldest = shell.paused(shell.script("adjourn run -- ./parent.sh || exit $?; echo all done"))
    (middle,) = oldest["waiting_on"]
    (ask,) = shell.inbox()
    shell.adjourn("resume", ask["task_id"], "--approve-all")
    assert (shell.state(middle), shell.state(oldest["task_id"])) == ("queued", "waiting")
    shell.adjourn("resume", middle)
    assert shell.adjourn("resume", oldest["task_id"]).out.endswith("all done\n")


def test_a_child_that_is_canceled_does_not_leave_its_parent_waiting(shell: Shell) -> None:
    parent, child = family(shell)
    shell.adjourn("cancel", child["task_id"])
    assert shell.state(parent["task_id"]) == "queued"
    shell.adjourn("resume", parent["task_id"], expect=1)


def test_nothing_is_detached_from_inside_a_run(shell: Shell) -> None:
    """Nothing of a run outlives it."""
    shell.adjourn("run", "--", "sh", "-c", "adjourn run --detach -- sleep 300; echo $? > code")
    assert shell.lines("code") == ["2"]
    assert shell.processes() == {}


@pytest.mark.parametrize("words", [(), ("stubborn",)])
def test_an_interrupt_pauses_the_whole_family(shell: Shell, words: tuple[str, ...]) -> None:
    """D-R10, D-R12: the child is paused by its own supervisor, also when it must be killed.

    Nothing is uncertain.
    """
    shell.agent("interrupts.py")
    parent = shell.detached(
        "sh",
        "-c",
        f"adjourn run -- ./interrupts.py {' '.join(words)} || exit $?",
        options=("--grace", "3"),
    )
    until((shell.place / "ready").exists, what="the child works")
    shell.adjourn("pause", parent)
    states = {task["task_id"]: task["state"] for task in shell.json("tasks")["tasks"]}
    assert list(states.values()) == ["paused", "paused"]
    assert shell.lines("interrupts") == ["SIGINT"]
    assert shell.processes() == {}


def test_a_parent_that_was_interrupted_finds_its_child_again(shell: Shell) -> None:
    """D-R14: resuming the parent resumes what it had started, and starts no second one."""
    shell.script("echo start >> starts; touch ready; [ -e go ] || exec sleep 300")
    parent = shell.detached(
        "sh", "-c", "adjourn run -- ./script.sh || exit $?; echo parent is done >> starts"
    )
    until((shell.place / "ready").exists, what="the child works")
    shell.adjourn("pause", parent)
    (shell.place / "go").touch()
    child = next(
        task["task_id"] for task in shell.json("tasks")["tasks"] if task["task_id"] != parent
    )
    shell.adjourn("resume", child)
    shell.adjourn("resume", parent)
    assert shell.lines("starts") == ["start", "start", "parent is done"]
    assert len(shell.json("tasks")["tasks"]) == 2


def test_a_parent_that_waits_for_its_child_asks_for_no_input(shell: Shell) -> None:
    """A-R11, A-R25: its pause names the task; there is no question that somebody could answer."""
    parent, child = family(shell)
    assert parent["pause_reason"] == {
        "type": "waiting_on",
        "pending_tool_calls": [],
        "questions": [],
    }
    assert parent["paused_at"]
    assert shell.runs(parent["task_id"])[0]["pause_reason"] == "waiting_on"
    assert shell.json("show", parent["task_id"])["waiting_on"] == [child["task_id"]]


@pytest.mark.parametrize("end", ["echo went on", "exit 0"])
def test_a_script_that_drops_exit_code_10_of_its_child_waits_all_the_same(
    shell: Shell, end: str
) -> None:
    """A-R23: it would be called done while what it started waits for a person."""
    shell.agent("approved.sh")
    parent = shell.paused(shell.script(f"adjourn run -- ./approved.sh; {end}"))
    assert (parent["state"], parent["pause_reason"]["type"]) == ("waiting", "waiting_on")
    shell.adjourn("resume", parent["waiting_on"][0], "--approve-all")
    shell.adjourn("resume", parent["task_id"])
    assert shell.lines("effects") == ["done with approved"]


def test_a_script_that_fails_while_its_child_waits_names_the_child(shell: Shell) -> None:
    """A-R22"""
    shell.agent("approved.sh")
    failed = shell.json(
        "run", "--", shell.script("adjourn run -- ./approved.sh || exit 1"), expect=1
    )
    (ask,) = shell.inbox()
    assert ask["task_id"] in failed["error"]["message"]
    assert "did the script drop exit code 10?" in failed["error"]["message"]


def test_who_waits_for_a_parent_waits_while_its_child_works(shell: Shell) -> None:
    """A-R66: exit code 10 is for a person who can do something."""
    shell.script(
        '[ "$AUTO_APPROVAL" ] || exit 90; touch ready; until [ -e go ]; do sleep 0.05; done'
    )
    parent = shell.json("run", "--", "sh", "-c", "adjourn run -- ./script.sh || exit $?", expect=10)
    child = parent["waiting_on"][0]
    assert shell.adjourn("wait", parent["task_id"], expect=10).out.startswith("Paused")
    shell.adjourn("resume", child, "--approve-all", "--detach")
    until((shell.place / "ready").exists, what="the child works")
    late = shell.adjourn("wait", parent["task_id"], "--timeout", "0.3", expect=1)
    assert "is still waiting" in late.err
    waiting = shell.start("wait", parent["task_id"])
    (shell.place / "go").touch()
    until(lambda: shell.state(parent["task_id"]) == "queued", what="the child has ended")
    shell.adjourn("resume", parent["task_id"])
    assert waiting.wait(30) == 0
    waiting.communicate()


def test_settings_of_the_user_reach_what_a_run_starts_under_adjourn(shell: Shell) -> None:
    """A-R91: also that calls are asked about, which must not be lost on the way down."""
    settings = {
        "ADJOURN_AGENT_MODEL": "openai:scripted",
        "ADJOURN_AGENT_MAX_STEPS": "7",
        "ADJOURN_PAUSE_ON_APPROVAL": "1",
        "ADJOURN_EXIT_CODES": "none",
        "ADJOURN_CLAUDE": "/opt/claude",
        "ADJOURN_CODEX": "/opt/codex",
    }
    shell.adjourn("run", "--no-pause-on-approval", "--", "sh", "-c", "env > seen", env=settings)
    pairs = (line.partition("=") for line in shell.lines("seen"))
    seen = {name: value for name, _, value in pairs}
    assert {name: seen.get(name) for name in settings} == settings

"""The review after a task.

Headless by the usual verbs, at a terminal at once, with what the task changed.
"""

import re

import pytest

from tests.e2e.terminal import CTRL_C, Terminal
from tests.e2e.test_four_eyes import RULE, Team
from tests.plans.planner import Planner, noted

WRITES = r"printf 'one\ntwo\n' > new.txt; printf 'a\nB\nc\nd\n' > old.txt; rm gone.txt; echo wrote >> effects"


def the_review(shell: Planner) -> str:
    """Return the id of the only ask."""
    (ask,) = shell.inbox()
    name: str = ask["id"]
    return name


@pytest.fixture
def work(shell: Planner) -> Planner:
    """Return a shell with a plan whose first task changes files, and is reviewed."""
    (shell.place / "old.txt").write_text("a\nb\nc\n")
    (shell.place / "gone.txt").write_text("x\n")
    (shell.place / "same.txt").write_text("x\n")
    shell.plan(
        {"id": "write", "run": WRITES, "review": True}, noted("next", "write"), noted("free")
    )
    return shell


def test_the_plan_stops_for_a_review_and_says_what_changed(work: Planner) -> None:
    """Nothing else starts, ready or not; show says the same."""
    told = work.adjourn("execute", expect=10).out
    assert work.effects == ["wrote"]
    for text in (told, work.adjourn("show", work.task("write")).out):
        assert "is the work of write good?" in text
        assert re.search(r"gone\.txt +\| +1 -  removed", text)
        assert re.search(r"new\.txt +\| +2 \+\+  added", text)
        assert re.search(r"old\.txt +\| +3 \+\+-\n", text)
        assert "same.txt" not in text
        assert "choose: approve | approve and stop | request changes: TEXT | reject" in text
    assert f"adjourn execute {work.place / 'plan.toml'}" in told
    assert work.execute(expect=10)["tasks"][0]["in_review"]
    assert work.effects == ["wrote"]


def test_what_a_task_changed_is_in_the_json_of_show(work: Planner) -> None:
    work.execute(expect=10)
    changes = work.json("show", work.task("write"))["changes"]
    assert changes["is_whole"]
    assert {file["path"]: file["what"] for file in changes["files"]} == {
        "effects": "added",
        "gone.txt": "removed",
        "new.txt": "added",
        "old.txt": "changed",
    }


def test_what_changed_is_counted_from_the_first_start_whoever_starts_it(shell: Planner) -> None:
    """What others changed while it waited for approval is not its work."""
    shell.plan({"id": "a", "run": "echo a > mine", "pause_on_approval": True}, review=True)
    shell.execute(expect=10)
    (shell.place / "other").write_text("x\n")
    shell.adjourn("resume", shell.task("a"), "--approve-all", expect=10)
    assert [file["path"] for file in shell.json("show", shell.task("a"))["changes"]["files"]] == [
        "mine"
    ]


@pytest.mark.parametrize("word", ["approve", "approve and stop"])
def test_after_an_approval_execute_goes_on(work: Planner, word: str) -> None:
    work.execute(expect=10)
    work.adjourn("answer", the_review(work), word)
    work.execute()
    assert work.effects == ["wrote", "next", "free"]
    (run,) = work.runs(work.task("write"))
    assert (run["state"], run["resumable"]) == ("succeeded", False)
    assert "pause_reason" not in run


def test_a_review_can_be_given_with_resume(work: Planner) -> None:
    work.execute(expect=10)
    work.adjourn("resume", work.task("write"), "approve")
    work.execute()
    assert work.effects == ["wrote", "next", "free"]


def test_a_rejection_fails_the_task_and_blocks_what_needs_it(work: Planner) -> None:
    work.execute(expect=10)
    work.adjourn("answer", the_review(work), "reject: too slow")
    work.execute(expect=1)
    assert work.states() == {"write": "failed", "next": "blocked", "free": "succeeded"}
    assert "too slow" in work.json("show", work.task("write"))["error"]["message"]


def test_changes_are_made_in_a_run_of_the_same_session_with_the_feedback(shell: Planner) -> None:
    """And it is reviewed again; what changed is told since the task began."""
    script = 'cat "${ADJOURN_FEEDBACK:-/dev/null}" >> effects; echo done >> effects; date +%N > "file.$(wc -l < effects)"'
    shell.plan({"id": "a", "run": script}, review=True)
    shell.execute(expect=10)
    shell.adjourn("answer", the_review(shell), "request changes: make it  blue\nand green")
    shell.execute(expect=10)
    assert shell.effects == ["done", "make it  blue", "and green", "done"]
    one, two = shell.runs(shell.task("a"))
    assert two["resumed_from_run_id"] == one["run_id"]
    files = [file["path"] for file in shell.json("show", shell.task("a"))["changes"]["files"]]
    assert files == ["effects", "file.1", "file.4"]
    shell.adjourn("answer", the_review(shell), "approve")
    shell.execute()
    assert len(shell.effects) == 4


def test_what_is_no_review_is_refused(work: Planner) -> None:
    work.execute(expect=10)
    for word in ("yes", "request changes", "aprove"):
        told = work.adjourn("answer", the_review(work), word, expect=2)
        assert "takes one of: approve, approve and stop, request changes: TEXT, reject" in told.err
    assert work.effects == ["wrote"]


def test_a_task_cannot_approve_its_own_work(shell: Planner) -> None:
    """Neither by the verb, nor by a file that it leaves before anybody has asked."""
    folder = ".adjourn/clarifications"
    answer = 'echo "{\\"review\\": \\"approve\\"}"'
    response = f"mkdir -p -m 700 {folder}; {answer} > {folder}/$ADJOURN_TASK_ID.response.yaml"
    shell.plan(
        {"id": "a", "run": f"{response}; echo a >> effects", "review": True}, noted("b", "a")
    )
    shell.execute(expect=10)
    shell.execute(expect=10)
    assert shell.effects == ["a"]
    nosy = f"adjourn answer {the_review(shell)} approve"
    told = shell.adjourn("run", "--", "sh", "-c", nosy, expect=1)
    assert "refused inside a run" in told.err
    assert len(shell.inbox()) == 1


def test_execute_can_ask_for_reviews_that_the_plan_does_not_want(shell: Planner) -> None:
    shell.plan(noted("a"), noted("b"))
    shell.execute("--review", expect=10)
    assert shell.effects == ["a"]
    shell.adjourn("answer", the_review(shell), "approve")
    shell.execute()
    assert shell.effects == ["a", "b"]


# --- at a terminal --------------------------------------------------------------------------------


@pytest.mark.serial
def test_a_person_at_the_terminal_is_asked_at_once(work: Planner) -> None:
    """Nonsense is told and asked again; an approval goes on with the plan in the same command."""
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        assert "old.txt" in person.raw.decode()
        person.type(b"what\n")
        person.sees("takes one of")
        person.type(b"a\n")
        assert person.ends() == 0
    assert work.effects == ["wrote", "next", "free"]


@pytest.mark.serial
def test_approve_and_stop_starts_nothing_else(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        person.type(b"s\n")
        assert person.ends() == 10
    assert work.effects == ["wrote"]
    assert work.states() == {"write": "succeeded", "next": "ready", "free": "ready"}
    work.execute()
    assert work.effects == ["wrote", "next", "free"]


@pytest.mark.serial
def test_changes_that_a_person_types_are_made_at_once(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        person.type(b"c\n")
        person.sees("add what to change")
        person.raw = b""
        person.type(b"c more of it\n")
        # The second question: what is typed before it does not count
        person.sees("lines removed\r\napprove (a)")
        person.type(b"r no\n")
        assert person.ends() == 1
    assert work.effects == ["wrote", "wrote", "free"]
    assert work.states() == {"write": "failed", "next": "blocked", "free": "succeeded"}


@pytest.mark.serial
@pytest.mark.parametrize("keys", [b"\n", CTRL_C, b"\x04"], ids=["Enter", "Ctrl+C", "Ctrl+D"])
def test_a_person_may_leave_the_review_for_later(work: Planner, keys: bytes) -> None:
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        person.type(keys)
        assert person.ends() == 10
    assert work.effects == ["wrote"]
    work.adjourn("answer", the_review(work), "approve")
    work.execute()


@pytest.mark.serial
def test_a_review_that_was_left_for_later_is_asked_for_by_the_next_execute(work: Planner) -> None:
    work.execute(expect=10)
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        person.type(b"a\n")
        assert person.ends() == 0
    assert work.effects == ["wrote", "next", "free"]


@pytest.mark.serial
def test_a_review_that_somebody_gives_elsewhere_ends_the_question(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("later (Enter)?")
        work.adjourn("answer", the_review(work), "approve")
        assert person.ends() == 0
    assert work.effects == ["wrote", "next", "free"]


def test_a_review_lists_only_what_its_own_task_changed(shell: Planner) -> None:
    """What others change while it waits is not its work; a file that both change is."""
    for name in ("theirs.txt", "both.txt", "dropped.txt"):
        (shell.place / name).write_text("before\n")
    shell.plan(
        {
            "id": "write",
            "run": 'echo x >> both.txt; [ -n "$AUTO_APPROVAL" ] || { echo x > one.txt; exit 90; }; echo x > two.txt',
            "review": True,
        }
    )
    shell.execute(expect=10)
    (shell.place / "theirs.txt").write_text("after\n")
    (shell.place / "both.txt").write_text("after\n")
    (shell.place / "new.txt").write_text("after\n")
    (shell.place / "dropped.txt").unlink()
    shell.execute(expect=10)  # and looks at it once more
    shell.adjourn("approve", the_review(shell))
    shell.adjourn("resume", "write", expect=10)
    changes = shell.json("show", "write")["changes"]
    assert {file["path"]: file["what"] for file in changes["files"]} == {
        "both.txt": "changed",
        "one.txt": "added",
        "two.txt": "added",
    }


def test_a_review_is_no_approval_and_a_plan_waits_for_both_people(shell: Planner) -> None:
    """Promises 20."""
    team = Team(shell)
    team.policy(RULE)
    shell.plan({"id": "ship", "run": "echo shipped >> effects", "review": True})
    shell.environment["ADJOURN_PAUSE_ON_APPROVAL"] = "1"
    shell.adjourn("execute", expect=10)
    team.approve(the_review(shell))
    shell.adjourn("execute", expect=10)
    assert shell.inbox()[0]["approvals"]["missing_from"] == ["ben", "cleo"]
    assert not (shell.place / "effects").exists()
    team.approve(the_review(shell), by="ben")
    shell.adjourn("execute", expect=10)
    assert shell.effects == ["shipped"]
    shell.adjourn("answer", the_review(shell), "approve")
    shell.adjourn("execute")
    shell.adjourn("audit", "verify")

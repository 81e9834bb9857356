"""From a pause to the end in one step: --resume, keys at the terminal, filters of the inbox."""

import time

import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import CTRL_C, Terminal

GATED = '[ "$AUTO_APPROVAL" ] || exit 90; echo released >> effects'
ASKS = {"ADJOURN_PROMPT": ""}  # a pause asks at once, as it does for people
KEYS = "a approve"


def test_one_command_leads_from_a_paused_approval_to_the_end(shell: Shell) -> None:
    ask = shell.paused("sh", "-c", GATED)["asks"][0]
    done = shell.adjourn("approve", ask["id"], "--resume", "--comment", "seen with Anna")
    assert done.out.startswith(f"approved {ask['id']}")
    assert "Resume with" not in done.out
    assert shell.lines("effects") == ["released"]
    assert "comment seen with Anna" in shell.adjourn("show", ask["task_id"]).out
    question = shell.paused(
        "sh", "-c", 'where=$(adjourn ask "Where?") || exit; echo $where >> effects'
    )
    shell.adjourn("answer", question["asks"][0]["id"], "here", "--resume")
    assert shell.lines("effects") == ["released", "here"]
    rejected = shell.paused("sh", "-c", GATED)["asks"][0]
    shell.adjourn("reject", rejected["id"], "--resume", expect=1)
    again = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90; adjourn ask "More?"')
    manifest = shell.json("approve", again["asks"][0]["id"], "--resume", expect=10)
    assert manifest["asks"][0]["kind"] == "question"


def test_the_inbox_is_filtered_and_its_ids_are_approved_together(shell: Shell) -> None:
    approvals = [shell.paused("sh", "-c", GATED)["asks"][0] for _ in range(2)]
    question = shell.paused("sh", "-c", 'adjourn ask "Where?"')["asks"][0]
    assert shell.adjourn("inbox", "--kind", "question", "--ids").out == f"{question['id']}\n"
    assert [
        ask["id"] for ask in shell.json("inbox", "--task", approvals[1]["task_id"])["asks"]
    ] == [approvals[1]["id"]]
    assert len(shell.json("inbox", "--mine")["asks"]) == 3
    ids = shell.adjourn("inbox", "--kind", "approval", "--ids").raw
    shell.run("adjourn", "approve", "-", stdin=ids)
    assert [ask["id"] for ask in shell.inbox()] == [question["id"]]
    assert shell.adjourn("inbox", "--kind", "approval", "--ids").out == ""
    last = shell.paused("sh", "-c", GATED)["asks"][0]
    shell.adjourn("approve", "--all", "--task", last["task_id"][:8])
    shell.adjourn("approve", "--all", expect=2)
    shell.adjourn("approve", "--all", "--task", question["task_id"], expect=3)


@pytest.mark.serial
def test_a_pause_at_a_terminal_is_settled_on_the_spot(shell: Shell) -> None:
    """A person stays at 80 columns and 24 rows, and the task goes on at once."""
    with Terminal(shell, "run", "--", "sh", "-c", GATED, columns=80, rows=24, env=ASKS) as person:
        person.shows(KEYS)
        # All of it is on the screen: nothing has scrolled away
        assert any(row.startswith("Paused: 1 thing to settle") for row in person.lines)
        assert any(row.startswith("    $ sh -c ") for row in person.lines)
        person.listen(0.4)
        person.type(b"?")
        person.shows("Approve this call, as it is shown.")
        person.listen(0.4)
        person.type(b"a")
        assert person.ends() == 0
        assert any(row.startswith("Completed: worked") for row in person.lines)
    assert shell.lines("effects") == ["released"]
    for leave in (CTRL_C, b"n", b"\x04"):
        with Terminal(shell, "run", "--", "sh", "-c", GATED, env=ASKS) as person:
            person.shows(KEYS)
            person.listen(0.4)
            person.type(leave)
            assert person.ends() == 10
    assert len(shell.inbox()) == 3
    assert shell.lines("effects") == ["released"]


@pytest.mark.serial
@pytest.mark.parametrize("env", [{"CI": "1"}, {"ADJOURN_PROMPT": "0"}])
def test_nobody_is_asked_where_nobody_may_be(shell: Shell, env: dict[str, str]) -> None:
    with Terminal(shell, "run", "--", "sh", "-c", GATED, env=ASKS | env) as person:
        assert person.ends() == 10
        assert KEYS not in "\n".join(person.lines)


@pytest.mark.serial
def test_keys_that_are_held_pasted_or_typed_ahead_decide_nothing(shell: Shell) -> None:
    script = shell.script(f"sleep 0.7; {GATED}")
    with Terminal(shell, "run", "--", script, env=ASKS) as person:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:  # held down from before it was shown
            person.type(b"a")
            person.listen(0.03)
        assert len(shell.inbox()) == 1
        person.listen(0.5)
        person.type(b"aaaa")
        person.shows("Several keys came at once")
        assert len(shell.inbox()) == 1
        person.listen(0.5)
        person.type(b"n")
        assert person.ends() == 10
    assert shell.lines("effects") == []


@pytest.mark.serial
def test_the_inbox_is_settled_ask_by_ask(shell: Shell) -> None:
    first = shell.json("run", "--pause-on-approval", "--", "touch", "made", expect=10)["asks"][0]
    second = shell.paused("sh", "-c", GATED)["asks"][0]
    third = shell.paused("sh", "-c", 'adjourn ask "Where?" --choice here --choice there')["asks"][0]
    with Terminal(shell, "inbox", "-i", columns=80, rows=24, env=ASKS) as person:
        person.shows("A always allow")
        person.listen(0.4)
        person.type(b"A")
        person.shows("exactly  touch made")
        person.shows("(yes, or Enter for no)")
        person.listen(0.4)
        person.type(b"yes\n")
        person.shows("allowed from now on")
        person.shows(second["id"][:8])
        person.listen(0.5)
        person.type(b"r")
        person.shows("Reason")
        person.type(b"not today\n")
        person.shows("Rejected.")
        person.shows("t answer")
        person.listen(0.5)
        person.type(b"t")
        person.shows("Answer (1 here, 2 there)")
        person.type(b"2\n")
        person.shows("Answered.")
        assert person.ends() == 0
    states = [shell.json("show", ask["id"]) for ask in (first, second, third)]
    assert [each["state"] for each in states] == ["approved", "rejected", "answered"]
    assert states[1]["reply"] == "not today"
    assert states[2]["reply"] == "there"
    shell.adjourn("inbox", "-i", expect=2)  # a pipe is no person

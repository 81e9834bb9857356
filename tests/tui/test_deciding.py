"""Approve, reject, answer, snooze, mark, edit and always allow, by keys."""

import pytest
from textual.events import Paste

from tests.e2e.shell import Shell
from tests.tui.pilot import Person, approvals, at_tui


def test_a_key_approves_what_is_on_the_screen_and_the_list_goes_on(shell: Shell) -> None:
    """A-R6, D-R57: the decision is the controller's, and the screen says the same command."""
    first, second = approvals(shell, 2)

    async def act(person: Person) -> None:
        await person.sees("number-0")
        await person.see_whole()
        await person.press("a")
        await person.sees("Approved.")
        await person.shows_ask(second["id"])
        assert person.app.command_log == [
            f"adjourn approve {first['id']} --digest {first['digest'][:16]}"
        ]
        # What was approved waits in the inbox for somebody to go on with it
        await person.until(lambda: any("task" in key for key in person.keys))

    at_tui(shell, act)
    assert [ask["id"] for ask in shell.inbox()] == [second["id"]]


def test_a_call_is_rejected_with_a_reason_and_a_question_answered_by_number(shell: Shell) -> None:
    (ask,) = approvals(shell, 1)
    question = shell.paused("adjourn", "ask", "Where to?", "--choice", "here", "--choice", "there")

    async def act(person: Person) -> None:
        await person.shows_ask(ask["id"])
        await person.see_whole()
        await person.press("t")
        await person.sees("It is an approval: a approves it, r rejects it.")
        await person.press("r")
        await person.sees("Reject it. Why?")
        await person.write("too late")
        await person.sees("Rejected.")
        await person.shows_ask(question["asks"][0]["id"])
        await person.see_whole()
        await person.press("a")
        await person.sees("It is a question: t answers it.")
        await person.press("t")
        await person.write("7")
        await person.sees("It must be one of these, or its number.")
        await person.pilot.press("backspace")
        await person.write("2")
        await person.sees("Answered.")

    at_tui(shell, act)
    assert "rejected by" in shell.adjourn("show", ask["task_id"]).out
    assert "too late" in shell.adjourn("show", ask["task_id"]).out
    assert "there" in shell.adjourn("show", question["task_id"]).out
    assert shell.inbox() == []


def test_marked_asks_are_shown_in_full_and_approved_together_or_not_at_all(shell: Shell) -> None:
    asks = approvals(shell, 3)

    async def act(person: Person) -> None:
        await person.shows_ask(asks[0]["id"])
        await person.pilot.press("space", "space")
        await person.sees("2 marked")
        await person.press("a")
        await person.sees("Approve all 2?")
        await person.press("escape")
        assert len(shell.inbox()) == 3
        await person.press("a")
        await person.sees("Approve all 2?")
        await person.until(lambda: bool(person.pane.rows))
        shown = "\n".join(row.text for row in person.pane.rows)
        assert "number-0" in shown
        assert "number-1" in shown
        assert "number-2" not in shown
        await person.see_all()
        await person.press("y")
        await person.sees("2 approved.")

    at_tui(shell, act)
    assert [ask["id"] for ask in shell.inbox()] == [asks[2]["id"]]

    async def refuse(person: Person) -> None:
        await person.shows_ask(asks[2]["id"])
        await person.pilot.press("space")
        await person.press("r")
        await person.sees("Reject all 1?")
        shell.adjourn("approve", asks[2]["id"])  # somebody was faster
        await person.see_all()
        await person.press("y")
        await person.sees("was approved by")

    at_tui(shell, refuse)


def test_an_ask_is_snoozed_and_comes_back_with_the_same_command(shell: Shell) -> None:
    (ask,) = approvals(shell, 1)

    async def act(person: Person) -> None:
        await person.shows_ask(ask["id"])
        await person.see_whole()
        await person.press("s")
        await person.sees("Nothing waits for you.")
        assert person.app.command_log == [f"adjourn snooze {ask['id']} --for 1h"]

    at_tui(shell, act)
    assert shell.inbox() == []
    assert ask["id"][:8] in shell.adjourn("inbox", "--snoozed").out


def test_a_call_is_edited_shown_again_and_approved_as_edited(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ask,) = approvals(shell, 1)
    monkeypatch.setenv("EDITOR", "sed -i s/number-0/number-9/")

    async def act(person: Person) -> None:
        await person.shows_ask(ask["id"])
        await person.see_whole()
        await person.press("e")
        await person.sees("Approve it so?")
        await person.see_all()
        assert any("number-9" in row.text for row in person.pane.rows)
        await person.press("y")
        await person.sees("Approved.")

    at_tui(shell, act)
    done = shell.adjourn("resume", ask["task_id"])
    assert done.out == "number-9\n"


def test_always_allow_shows_its_rule_and_keeps_it_after_a_yes(shell: Shell) -> None:
    (ask,) = approvals(shell, 1)

    async def act(person: Person) -> None:
        await person.shows_ask(ask["id"])
        await person.see_whole()
        await person.press("A")
        await person.sees("30d workspace")
        await person.pilot.press("ctrl+u")
        await person.write("8h task")
        await person.sees("keep this rule?")
        await person.sees("It would have matched 1 of the last 1 calls.")
        await person.see_all()
        await person.press("y")
        await person.sees("allowed from now on")
        assert person.app.command_log[-1] == (
            f"adjourn rules add --ask {ask['id']} --task {ask['task_id']} --until 8h"
        )

    at_tui(shell, act)
    assert "echo number-0" in shell.adjourn("rules", "list").out
    assert shell.inbox() == []


def test_what_somebody_decides_elsewhere_is_told_and_keys_do_nothing(shell: Shell) -> None:
    first, second = approvals(shell, 2)

    async def act(person: Person) -> None:
        await person.shows_ask(first["id"])
        await person.see_whole()
        shell.adjourn("reject", first["id"], "--reason", "no thanks")
        await person.sees(f"This was rejected by {shell.me}")
        await person.sees("no thanks")
        await person.press("a")
        await person.sees("It is settled already: keys do nothing here.")
        await person.pilot.press("j")
        await person.shows_ask(second["id"])

    at_tui(shell, act)
    assert [ask["id"] for ask in shell.inbox()] == [second["id"]]


def test_held_keys_pastes_and_double_clicks_decide_nothing_unseen(shell: Shell) -> None:
    """A burst of one key decides nothing; a paste is no key; a long call has to be scrolled."""
    approvals(shell, 3)
    long = shell.json(
        "run", "--pause-on-approval", "--", "echo", *(f"word-{at}" for at in range(80)), expect=10
    )["asks"][0]

    async def act(person: Person) -> None:
        await person.see_whole()
        await person.look()
        await person.pilot.press(*"aaaaaaaa")
        await person.sees("Several keys came at once")
        person.app.post_message(Paste("aaaa\ny\n"))
        await person.pilot.click("#list", times=2)
        await person.look()
        await person.pilot.press("end")
        await person.shows_ask(long["id"])
        await person.press("a")
        await person.sees("Not all of it was on the screen yet")
        await person.see_whole()
        await person.press("a")
        await person.sees("Approved.")

    at_tui(shell, act, size=(120, 24))
    assert len(shell.inbox()) == 3

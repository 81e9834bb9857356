"""Approve, reject, answer, snooze, mark, edit and always allow, by keys."""

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
        await person.until(
            lambda: (
                person.app.page is not None
                and person.app.page.ask is not None
                and person.app.page.ask.id == second["id"]
            )
        )
        assert person.app.command_log == [
            f"adjourn approve {first['id']} --digest {first['digest'][:16]}"
        ]

    at_tui(shell, act)
    assert [ask["id"] for ask in shell.inbox()] == [second["id"]]

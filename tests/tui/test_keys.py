"""Every key of the table, and where it leads."""

import asyncio

import pytest

from adjourn.tui.options import TuiOptions
from adjourn.views.keys import KEYS, KeyAction
from adjourn.views.screen_keys import SCREEN_KEYS, with_keymap
from tests.e2e.shell import Shell
from tests.tui.pilot import Person, approvals, at_tui

# Each is pressed in a test of this folder
IN_OTHER_TESTS = {
    *("approve", "reject", "answer", "edit", "always", "snooze", "mark"),  # test_deciding
    *("resume", "restart", "cancel", "new", "interrupt", "output"),  # test_runs
}
HERE = {
    *("down", "up", "first", "last", "page_down", "page_up", "open", "back"),
    *("filter", "go", "log", "wider", "narrower", "help", "leave"),
    *("transcript", "plan", "page"),
}


def test_every_key_is_pressed_in_a_test() -> None:
    assert {key.action for key in SCREEN_KEYS} == IN_OTHER_TESTS | HERE


def test_the_keys_that_settle_are_those_of_the_one_table() -> None:
    settling = {key.action: key.keys for key in SCREEN_KEYS if key.where == "ask"}
    for key in KEYS:
        if key.action not in {KeyAction.NEXT, KeyAction.HELP}:
            assert settling[key.action] == (key.key,)


def test_no_key_means_two_things_and_a_config_changes_keys() -> None:
    pressed = [each for key in SCREEN_KEYS for each in key.keys]
    assert len(pressed) == len(set(pressed))
    changed = {key.action: key.keys for key in with_keymap({"approve": "y"})}
    assert changed["approve"] == ("y",)
    with pytest.raises(ValueError, match="there is no action vote"):
        with_keymap({"vote": "v"})
    with pytest.raises(ValueError, match="the key r would mean"):
        with_keymap({"approve": "r"})


def test_keys_move_filter_go_and_show_help(shell: Shell) -> None:
    asks = approvals(shell, 3)

    def shown(person: Person) -> str:
        page = person.app.page
        return page.ask.id if page and page.ask else ""

    async def act(person: Person) -> None:
        press = person.pilot.press
        await person.shows_ask(asks[0]["id"])
        for keys, at in ((("j",), 1), (("down",), 2), (("k",), 1), (("G",), 2), (("g",), 0)):
            await press(*keys)
            await person.shows_ask(asks[at]["id"])
        await press("end")
        await person.shows_ask(asks[2]["id"])
        await press("home", "up")
        await person.shows_ask(asks[0]["id"])
        await press("question_mark")
        await person.sees("Approve this call, as it is shown.")
        await press("y")  # there is nothing to say yes to
        await press("pagedown", "down", "up", "end", "home", "pageup", "q")
        await press("@")
        await person.sees("Nothing yet.")
        await press("escape")
        width = person.app.query_one("#list").size.width
        await press("+")
        await person.until(lambda: person.app.query_one("#list").size.width > width)
        await press("_", "_")
        await person.until(lambda: person.app.query_one("#list").size.width < width)
        await press("/")
        await person.write("number-1")
        await person.shows_ask(asks[1]["id"])
        assert len(person.keys) == 1
        await press("escape")
        await person.until(lambda: len(person.keys) == 3)
        for place, text in (
            ("rules", "There are no always-allow rules."),
            ("audit", "event "),
            ("tasks", "Paused: 1 thing to settle"),
            (asks[2]["id"], "number-2"),
            ("inbox", "number-0"),
        ):
            await press("colon")
            await person.write(place)
            await person.sees(text)
        await press("d")
        await person.sees("history")
        await press("p")
        await person.sees("belongs to no plan")
        await press("c")
        await person.sees("has no conversation")
        await press("escape")
        await person.until(lambda: shown(person) != "")
        await press("q")

    at_tui(shell, act)


def test_one_pane_below_100_columns_decides_only_what_is_open(shell: Shell) -> None:
    asks = approvals(shell, 2)

    async def act(person: Person) -> None:
        await person.shows_ask(asks[0]["id"])
        await person.press("a")
        await person.sees("Not all of it was on the screen yet")
        await person.pilot.press("enter")
        await person.see_whole()
        await person.pilot.press("j", "k", "escape", "pagedown", "pageup")
        assert "number-1" in person.screen()
        await person.pilot.press("enter")
        await person.see_whole()
        await person.press("a")
        await person.sees("Approved.")

    at_tui(shell, act, size=(80, 24))
    assert len(shell.inbox()) == 1


def test_the_config_sets_theme_keys_and_width(shell: Shell) -> None:
    """A-R72: one config for the TUI and for everything else."""
    (ask,) = approvals(shell, 1)

    async def act(person: Person) -> None:
        await person.shows_ask(ask["id"])
        assert person.app.theme == "nord"
        assert person.app.query_one("#list").size.width < 30
        await person.see_whole()
        await person.press("y")
        await person.sees("Approved.")

    at_tui(shell, act, options=TuiOptions(theme="nord", list=20, keys={"approve": "y"}))


def test_two_tuis_and_two_stores_show_the_same(shell: Shell) -> None:
    (ask,) = approvals(shell, 1)
    other = Shell(shell.place / "other")
    other.place.mkdir()
    other.environment |= {
        name: shell.environment[name] for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")
    }
    other.environment.pop("ADJOURN_STORE", None)
    there = other.json(
        "run",
        "--pause-on-approval",
        "--store",
        str(other.place / ".adjourn"),
        "--",
        "echo",
        "elsewhere",
        expect=10,
    )["asks"][0]
    roots = [str(shell.store), str(other.place / ".adjourn")]

    async def act(person: Person) -> None:
        await person.until(lambda: len(person.keys) == 2)
        await person.pilot.press("end")
        await person.shows_ask(there["id"])
        await person.see_whole()
        await person.press("a")
        await person.sees("Approved.")
        assert f"--store {roots[1]}" in person.app.command_log[0]
        await person.pilot.press("home")
        await person.shows_ask(ask["id"])
        await asyncio.to_thread(shell.adjourn, "reject", ask["id"])
        await person.sees("This was rejected")

    at_tui(shell, act, roots=roots)

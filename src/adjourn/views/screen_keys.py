"""The keys of a surface that fills the screen: those that settle an ask, and all others.

Bindings, the line at the bottom, help and the page in the docs are made of this table.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from adjourn.views.keys import KEYS, Key, KeyAction

Where = Literal["ask", "task", "list", "everywhere"]


class ScreenKey(msgspec.Struct, frozen=True):
    """A key, or several for the same, what it does, and where it works."""

    keys: tuple[str, ...]  # as a person writes them
    action: str
    word: str  # for the line at the bottom
    sentence: str  # for help
    where: Where


def _settling(action: KeyAction) -> ScreenKey:
    """Return the key that does this to an ask wherever asks are settled by keys."""
    key: Key = next(each for each in KEYS if each.action is action)
    return ScreenKey((key.key,), key.action, key.word, key.sentence, "ask")


SCREEN_KEYS = (
    _settling(KeyAction.APPROVE),
    _settling(KeyAction.REJECT),
    _settling(KeyAction.ANSWER),
    _settling(KeyAction.EDIT),
    _settling(KeyAction.ALWAYS),
    _settling(KeyAction.SNOOZE),
    ScreenKey(
        ("space",), "mark", "mark", "Mark it; a and r then settle all that is marked.", "ask"
    ),
    ScreenKey(("u",), "resume", "resume", "Resume the task, or settle what it waits for.", "task"),
    ScreenKey(("R",), "restart", "restart", "Restart the task from nothing; you confirm.", "task"),
    ScreenKey(("x",), "cancel", "cancel", "Cancel the task; you confirm.", "task"),
    ScreenKey(("o",), "output", "output", "Show what the task prints, and follow it.", "task"),
    ScreenKey(("c",), "transcript", "transcript", "Show the agent's conversation.", "task"),
    ScreenKey(("p",), "plan", "plan", "Show the plan of the task, with all states.", "task"),
    ScreenKey(("d",), "page", "task", "Show the task: its state, work and history.", "task"),
    ScreenKey(("j", "down"), "down", "down", "Go to the next row.", "list"),
    ScreenKey(("k", "up"), "up", "up", "Go to the previous row.", "list"),
    ScreenKey(("home", "g"), "first", "first", "Go to the first row.", "list"),
    ScreenKey(("end", "G"), "last", "last", "Go to the last row.", "list"),
    ScreenKey(("pagedown",), "page_down", "page down", "Show the next page of the text.", "list"),
    ScreenKey(("pageup",), "page_up", "page up", "Show the page before of the text.", "list"),
    ScreenKey(
        ("enter",), "open", "open", "Show the whole of it; where there is room, it is.", "list"
    ),
    ScreenKey(("escape",), "back", "back", "Go back: to the list, or to all rows.", "list"),
    ScreenKey(("n",), "new", "new", "Start a task or a plan here.", "everywhere"),
    ScreenKey(("/",), "filter", "filter", "Show only rows with these words.", "everywhere"),
    ScreenKey(
        (":",), "go", "go to", "Go to inbox, tasks, rules, audit, or to an id.", "everywhere"
    ),
    ScreenKey(("@",), "log", "commands", "Show the commands that do what you did.", "everywhere"),
    ScreenKey(("+",), "wider", "wider", "Make the list wider.", "everywhere"),
    ScreenKey(("_",), "narrower", "narrower", "Make the list narrower.", "everywhere"),
    ScreenKey(("?",), "help", "help", "Show these keys.", "everywhere"),
    ScreenKey(("q",), "leave", "quit", "Quit. What runs goes on.", "everywhere"),
    ScreenKey(
        ("ctrl+c",),
        "interrupt",
        "pause or quit",
        "Pause the task that you started here; again, or without one, quit.",
        "everywhere",
    ),
)


def with_keymap(keymap: Mapping[str, str]) -> tuple[ScreenKey, ...]:
    """Return the table with other keys for some actions, as a config names them.

    Raise ValueError for an action that is unknown, and for a key that would do two things.
    """
    known = {each.action for each in SCREEN_KEYS}
    if unknown := sorted(keymap.keys() - known):
        raise ValueError(f"there is no action {unknown[0]}; there are {', '.join(sorted(known))}")
    table = tuple(
        msgspec.structs.replace(each, keys=(keymap[each.action],))
        if each.action in keymap
        else each
        for each in SCREEN_KEYS
    )
    taken: dict[str, str] = {}
    for each in table:
        for key in each.keys:
            if key in taken:
                raise ValueError(f"the key {key} would mean {taken[key]} and {each.action}")
            taken[key] = each.action
    return table

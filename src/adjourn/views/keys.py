"""The one table of keys by which a person settles asks, on every surface that has keys."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk


class KeyAction(StrEnum):
    """What a key does."""

    APPROVE = "approve"
    ALWAYS = "always"
    REJECT = "reject"
    EDIT = "edit"
    ANSWER = "answer"
    SNOOZE = "snooze"
    NEXT = "next"
    HELP = "help"


class Key(msgspec.Struct, frozen=True):
    """A key, what it does, and in words what that is."""

    key: str
    action: KeyAction
    word: str  # for the line below an ask
    sentence: str  # for help


KEYS = (
    Key("a", KeyAction.APPROVE, "approve", "Approve this call, as it is shown."),
    Key(
        "A",
        KeyAction.ALWAYS,
        "always allow",
        "Approve it, and allow the same call from now on; the rule is shown first.",
    ),
    Key("r", KeyAction.REJECT, "reject", "Reject this call; you are asked for a reason."),
    Key("e", KeyAction.EDIT, "edit", "Change the call in your editor, then approve it."),
    Key("t", KeyAction.ANSWER, "answer", "Answer the question."),
    Key("s", KeyAction.SNOOZE, "snooze", "Hide it from the inbox for an hour."),
    Key("n", KeyAction.NEXT, "next", "Leave it open, and go to the next one."),
    Key("?", KeyAction.HELP, "help", "Show these keys."),
)
_ALWAYS_THERE = frozenset({KeyAction.SNOOZE, KeyAction.NEXT, KeyAction.HELP})


def keys_for(ask: Ask) -> tuple[Key, ...]:
    """Return the keys that an ask takes."""
    match ask:
        case ApprovalAsk() if ask.terms.override:
            # What the policy never allows is not approved by one key
            actions = _ALWAYS_THERE | {KeyAction.REJECT}
        case ApprovalAsk():
            actions = _ALWAYS_THERE | {KeyAction.APPROVE, KeyAction.REJECT, KeyAction.EDIT}
            if ask.gate:  # only what stands before a gate can run by a rule
                actions |= {KeyAction.ALWAYS}
        case QuestionAsk():
            actions = _ALWAYS_THERE | {KeyAction.ANSWER}
        case _:
            actions = _ALWAYS_THERE  # an uncertain call is settled by `settle`
    return tuple(key for key in KEYS if key.action in actions)


def keys_line(keys: Sequence[Key]) -> str:
    """Return the keys on one line."""
    return "  ".join(f"{key.key} {key.word}" for key in keys)

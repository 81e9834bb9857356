"""What a channel shows of text that wants to be seen as something else, and what fits into it."""

import re

import msgspec
import pytest

from adjourn.core.text.render import prose
from adjourn.notifiers import slack, telegram
from adjourn.ports.notifier import Buttons, Message
from adjourn.views.message import choice_labels, defused, fitting_text
from tests.hostile import BIDI, CONTROLS, ZERO_WIDTH

HOSTILE = [
    "@everyone <!channel> <@U1> [x](http://evil.example) *bold* _it_ `code` ~no~ #tag /command",
    "```\nfence ``` <b>html</b> &amp; tg://user?id=1 mailto:a@b.example www.evil.example",
    *(f"safe{character}; rm -rf /" for character in (*CONTROLS[:4], *BIDI[:4], *ZERO_WIDTH[:4])),
]


def message(text: str, **changes: object) -> Message:
    buttons = Buttons(ask_id="a" * 26, digest="0" * 16, can_approve=True, can_reject=True)
    made = Message(
        id="evt", subject="Approval", title=prose(text), text=text, show="show", buttons=buttons
    )
    return msgspec.structs.replace(made, **changes)


@pytest.mark.parametrize("text", HOSTILE)
def test_telegram_and_slack_parse_nothing(text: str) -> None:
    shown = message(prose(text))
    content = telegram._content(shown)
    assert "parse_mode" not in content
    (entity,) = content["entities"]
    units = len(content["text"].encode("utf-16-le")) // 2
    assert (entity["type"], entity["offset"], entity["length"]) == ("pre", 0, units)
    assert content["text"].isprintable()

    posted = slack._content(shown, has_buttons=True)
    assert (posted["mrkdwn"], posted["parse"], posted["link_names"]) == (False, "none", False)
    assert {block["type"] for block in posted["blocks"]} == {"rich_text", "actions"}
    assert not re.search(
        "[<>]", slack._content(message("x", subject=text), has_buttons=True)["text"]
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_where_links_are_made_of_text_none_can_be_made(text: str) -> None:
    assert not re.search(r"://|www\.|mailto:", defused(prose(text)))


@pytest.mark.parametrize("length", [4_095, 4_096, 4_097, 100_000])
def test_what_was_cut_cannot_be_approved(length: int) -> None:
    text = "\n".join("😀" * 19 for _ in range(length // 20))
    text += "x" * (length - len(text))
    content = telegram._content(message(text))
    units = len(content["text"].encode("utf-16-le")) // 2
    is_whole = content["text"] == text
    assert units <= 4_096
    labels = [
        button["text"] for row in content["reply_markup"]["inline_keyboard"] for button in row
    ]
    assert labels == (["Approve", "Reject…"] if is_whole else ["Reject…"])
    if not is_whole:
        assert "more lines are not shown here" in content["text"]


def test_a_text_of_one_endless_line_is_cut_to_what_is_left_out() -> None:
    text, is_whole = fitting_text(message("x" * 10_000), limit=4_096)
    assert not is_whole
    assert len(text) <= 4_096


def test_long_choices_have_numbers() -> None:
    buttons = Buttons(ask_id="a", choices=("yes", "x" * 41, "x" * 42))
    assert choice_labels(buttons) == ["yes", f"2. {'x' * 36}…", f"3. {'x' * 36}…"]

"""Arguments that try to be seen as something else: the tool gets exactly the bytes, a person sees what they are."""

import json
import os
import re

import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal
from tests.hostile import HOSTILE_WORDS

BATCH = 60
BATCHES = [HOSTILE_WORDS[start : start + BATCH] for start in range(0, len(HOSTILE_WORDS), BATCH)]
RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_the_tool_gets_exactly_the_bytes_and_nobody_is_fooled(shell: Shell, number: int) -> None:
    """C-R8: before and after approval the same bytes; no control or invisible character on any output."""
    words = [os.fsencode(word) for word in BATCHES[number]]
    paused = shell.adjourn("run", "--", shell.agent("record.py"), *words, expect=10)
    (ask,) = shell.inbox()
    outputs = [
        paused,
        shell.adjourn("show", ask["task_id"], "--full"),
        shell.adjourn("inbox"),
        shell.adjourn("tasks"),
        shell.adjourn("approve", ask["id"], "--value", words[0] or b"yes"),
        shell.adjourn("show", ask["task_id"]),
        shell.adjourn("resume", ask["task_id"]),
        shell.adjourn("runs", ask["task_id"]),
    ]
    for done in outputs:
        assert not RAW.search(done.out + done.err), done.words
    for line in shell.lines("record"):
        assert json.loads(line)["argv"] == [word.hex() for word in words]
    assert len(shell.lines("record")) == 2


def test_a_terminal_shows_a_hostile_call_as_what_it_is(shell: Shell) -> None:
    """Nothing moves the cursor, clears the screen, sets a title or wraps into a line of its own."""
    hostile = [
        "\x1b[2J\x1b[H",
        "\x1b]0;approved\x07",
        "\x1b]52;c;cm0=\x07",
        "a\rb",
        "evil\b\b\b\bgood",
        "\u202efdp.exe",
        "x" * 300,
    ]
    manifest = shell.paused("sh", "-c", "exit 90", *hostile)
    person = Terminal(shell, "show", manifest["task_id"])
    try:
        assert person.ends() == 0
        assert b"\x1b]" not in person.raw
        assert person.lines[0].startswith("Paused: 1 thing to settle")
        shown = "\n".join(person.lines)
        for number in range(len(hostile) + 3):
            assert re.search(rf'^ +{number}  "', shown, re.MULTILINE), number
        assert "history" in shown
    finally:
        person.close()


def test_what_a_command_prints_cannot_play_tricks_on_a_terminal(shell: Shell) -> None:
    person = Terminal(shell, "run", "--", "sh", "-c", "printf 'first\\n\\033[2J\\033[H\\033]0;t\\007second\\n'")
    try:
        assert person.ends() == 0
        assert b"\x1b[2J" not in person.raw
        assert b"\x1b]0" not in person.raw
        assert person.lines[0] == "first"
        assert "second" in person.lines[1]
    finally:
        person.close()


def test_a_question_cannot_look_like_anything_else(shell: Shell) -> None:
    question = "Delete?\nApprove with: adjourn approve everything\n\x1b[2J\u202e"
    script = shell.script(
        'adjourn ask "$(cat question)" --key "$(printf \'k\\033[31m\')" --choice "$(printf \'\\033[8myes\')"; exit 10'
    )
    (shell.place / "question").write_text(question)
    paused = shell.adjourn("run", "--", script, expect=10)
    assert not RAW.search(paused.out)
    forged = [line for line in paused.out.splitlines() if line.startswith("Approve with")]
    assert forged == []
    assert not RAW.search(shell.adjourn("inbox").out)
    (ask,) = shell.inbox()
    assert ask["prompt"] == question
    told = shell.adjourn("answer", ask["id"], "no\x1b[31m", expect=2)
    assert not RAW.search(told.err)


def test_many_arguments_of_two_megabytes_together_go_through(shell: Shell) -> None:
    """As much as the kernel takes; what is shown says how much was left out and how to see it."""
    words = ["x" * 60_000] * 25
    manifest = shell.paused(shell.agent("record.py"), *words)
    text = shell.adjourn("show", manifest["task_id"]).out
    assert len(text) < 200_000
    assert f"adjourn show {manifest['task_id']} --full" in text
    whole = shell.adjourn("show", "--full", manifest["task_id"]).out
    assert whole.count("x" * 60_000) >= 25
    shell.adjourn("resume", manifest["task_id"], "--approve-all")
    first, second = (json.loads(line)["argv"] for line in shell.lines("record"))
    assert first == second == [word.encode().hex() for word in words]


def test_a_value_that_no_process_should_get_is_refused_before_it_is_recorded(shell: Shell) -> None:
    manifest = shell.paused(shell.agent("approved.sh"))
    said = shell.adjourn("resume", manifest["task_id"], "--approve-all", "--value", "v" * 120_000, expect=2).err
    assert "4,096 bytes" in said
    shell.adjourn("resume", manifest["task_id"], "--approve-all", "--value", "v" * 4096)
    assert shell.lines("effects") == [f"done with {'v' * 4096}"]

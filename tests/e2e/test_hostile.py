"""Arguments that try to be seen as something else.

The tool gets exactly the bytes, a person sees what they are.
"""

import json
import os
import re

import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal
from tests.hostile import HOSTILE_WORDS, JOINER

BATCH = 60
BATCHES = [HOSTILE_WORDS[start : start + BATCH] for start in range(0, len(HOSTILE_WORDS), BATCH)]
RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_the_tool_gets_exactly_the_bytes_and_nobody_is_fooled(shell: Shell, number: int) -> None:
    """C-R8: before and after approval the same bytes.

    No control or invisible character on any output.
    """
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
        assert not RAW.search(JOINER.sub("", done.out + done.err)), done.words
    for line in shell.lines("record"):
        assert json.loads(line)["argv"] == [word.hex() for word in words]
    assert len(shell.lines("record")) == 2


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_no_surface_hands_on_what_a_terminal_would_obey(shell: Shell, number: int) -> None:
    """JSON, notifications, logs, edits and snoozes.

    0 raw control characters, and the JSON still says exactly what it was.
    """
    words = [os.fsencode(word) for word in BATCHES[number]]
    texts = [word.decode("utf-8", "replace") for word in words]
    config = shell.place / ".config" / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True)
    told = shell.script(
        f"cat >> '{shell.place}/told'; echo >> '{shell.place}/told'", name="notify.sh"
    )
    config.write_text(f'[[notify]]\ncommand = ["{shell.place}/{told}"]\n')
    paused = shell.adjourn(
        "run", "--output", "json", "--", shell.agent("record.py"), *words, expect=10
    )
    task, ask = paused.doc["task_id"], paused.doc["asks"][0]["id"]
    edited = json.dumps({"argv": ["./record.py", *texts, "edited"], "cwd": str(shell.place)})
    (shell.place / "edited").write_text(edited)
    (shell.place / "wrong").write_text(
        json.dumps({"argv": ["a"], "cwd": str(shell.place), texts[0] + "\x1b[2J": 1})
    )
    outputs = [
        paused,
        shell.adjourn("inbox", "--output", "json"),
        shell.adjourn("tasks", "--output", "json"),
        shell.adjourn("show", "--full", "--output", "json", task),
        shell.adjourn("snooze", ask, "--for", "1h"),
        shell.adjourn("inbox", "--snoozed"),
        shell.adjourn("approve", ask, f"x{ask}", "\x1b[2J\u202e", expect=3),
        shell.adjourn("approve", ask, "--edit", env={"EDITOR": "cp wrong"}, expect=2),
        shell.adjourn("approve", ask, "--edit", env={"EDITOR": "cp edited"}),
        shell.adjourn("show", "--full", task),
        shell.adjourn("worker", "--once"),
        shell.adjourn("notify", "--flush"),
    ]
    for done in outputs:
        assert not RAW.search(JOINER.sub("", done.out + done.err)), done.words
    for path in (shell.place / "told", shell.store / "session" / "pause.json"):
        assert not RAW.search(JOINER.sub("", path.read_text())), path
    whole = outputs[3].doc["pause_reason"]["pending_tool_calls"][0]["arguments"]["argv"][1:]
    assert [word for word in whole if isinstance(word, str)] == [
        text for text, word in zip(texts, words, strict=True) if text.encode() == word
    ]
    assert json.loads(shell.lines("record")[-1])["argv"] == [
        text.encode().hex() for text in (*texts, "edited")
    ]


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_a_terminal_shows_every_hostile_word_before_it_is_approved(
    shell: Shell, number: int
) -> None:
    """Through a terminal emulator.

    Each word of the edited call has its own numbered row, and nothing moved the cursor.
    """
    words = [
        word.encode("utf-8", "replace").decode() for word in BATCHES[number] if "\0" not in word
    ]
    manifest = shell.paused("sh", "-c", "exit 90")
    (shell.place / "edited").write_text(
        json.dumps({"argv": ["sh", *words], "cwd": str(shell.place)})
    )
    with Terminal(
        shell,
        "approve",
        manifest["asks"][0]["id"],
        "--edit",
        env={"EDITOR": "cp edited", "NO_COLOR": "1"},
    ) as person:
        person.sees("Approve it so?")
        assert b"\x1b" not in person.raw
        assert not RAW.search(JOINER.sub("", person.raw.decode().replace("\r\n", "\n")))
        shown = "\n".join(person.lines)
        rows = [int(found) for found in re.findall(r'^ +(\d+)  "', shown, re.MULTILINE)]
        assert rows == list(range(len(words) + 1))[-len(rows) :]
        assert rows[-1] == len(words)
        person.type(b"n\r")
        assert person.ends() == 2


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
    with Terminal(shell, "show", manifest["task_id"]) as person:
        assert person.ends() == 0
        assert b"\x1b]" not in person.raw
        assert person.lines[0].startswith("Paused: 1 thing to settle")
        shown = "\n".join(person.lines)
        for number in range(len(hostile) + 3):
            assert re.search(rf'^ +{number}  "', shown, re.MULTILINE), number
        assert "history" in shown


def test_what_a_command_prints_cannot_play_tricks_on_a_terminal(shell: Shell) -> None:
    with Terminal(
        shell, "run", "--", "sh", "-c", "printf 'first\\n\\033[2J\\033[H\\033]0;t\\007second\\n'"
    ) as person:
        assert person.ends() == 0
        assert b"\x1b[2J" not in person.raw
        assert b"\x1b]0" not in person.raw
        assert person.lines[0] == "out │ first"
        assert "second" in person.lines[1]


def test_a_question_cannot_look_like_anything_else(shell: Shell) -> None:
    question = "Delete?\nApprove with: adjourn approve everything\n\x1b[2J\u202e"
    script = shell.script(
        'adjourn ask "$(cat question)" --key "$(printf \'k\\033[31m\')" --choice "$(printf \'\\033[8myes\')"; exit 10'
    )
    (shell.place / "question").write_text(question)
    paused = shell.adjourn("run", "--", script, expect=10)
    assert not RAW.search(JOINER.sub("", paused.out))
    forged = [line for line in paused.out.splitlines() if line.startswith("Approve with")]
    assert forged == []
    assert not RAW.search(JOINER.sub("", shell.adjourn("inbox").out))
    (ask,) = shell.inbox()
    assert ask["prompt"] == question
    told = shell.adjourn("answer", ask["id"], "no\x1b[31m", expect=2)
    assert not RAW.search(JOINER.sub("", told.err))


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
    said = shell.adjourn(
        "resume", manifest["task_id"], "--approve-all", "--value", "v" * 120_000, expect=2
    ).err
    assert "4,096 bytes" in said
    shell.adjourn("resume", manifest["task_id"], "--approve-all", "--value", "v" * 4096)
    assert shell.lines("effects") == [f"done with {'v' * 4096}"]

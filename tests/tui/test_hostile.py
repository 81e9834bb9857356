"""Hostile text in every field: no byte of it reaches the terminal, and none changes the screen."""

import re
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.color import Color

from adjourn.tui.styles import HarmlessText, harmless_text
from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal
from tests.hostile import HOSTILE, HOSTILE_WORDS

# What Textual itself writes: places, colours, modes, the shape of the pointer, and texts
_OURS = re.compile(
    rb"\x1b\[\d+;\d+H|\x1b\[[0-9;]*m|\x1b\[[?>=<][0-9;]*[hluc]|\x1b\[\?\d+\$p|\x1b\]22;[a-z]*\x07"
)


def test_the_last_filter_lets_nothing_through_that_a_terminal_obeys() -> None:
    for text in HOSTILE:
        clean = harmless_text(text)
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", clean)
    (segment,) = HarmlessText().apply([Segment("a\x1b]0;x\x07b")], Color(0, 0, 0))
    assert "\x1b" not in segment.text
    assert harmless_text("große 漢字 é") == "große 漢字 é"


@pytest.mark.serial
def test_hostile_words_in_every_field_change_nothing_on_the_screen(
    shell: Shell, sweep: str, tmp_path: Path
) -> None:
    """Commands, questions, choices, manifests, names of files and output, in every view."""
    words = HOSTILE_WORDS if sweep == "full" else HOSTILE_WORDS[:: max(1, len(HOSTILE_WORDS) // 40)]
    words = [word for word in words if word and len(word) < 2_000]
    shell.adjourn("run", "--pause-on-approval", "--", "echo", *words, expect=10)
    script = tmp_path / "ask.py"
    script.write_text(
        "import os, sys\n"
        f"for word in {words!r}:\n"
        "    sys.stdout.buffer.write(os.fsencode(word) + b'\\n')\n"
        "os.execvp('adjourn', ['adjourn', 'ask', sys.argv[1], '--choice', sys.argv[2]])\n"
    )
    shell.adjourn("run", "--", "python3", str(script), " ".join(words[:20]), words[-1], expect=10)
    with Terminal(shell, "tui", columns=120, rows=40) as person:
        person.shows("approval")
        for keys, text in (
            (b"\x1b[6~", "approval"),
            (b"\x1b[6~", "approval"),
            (b"j", "question"),
            (b"o", "out"),
            (b"d", "history"),
            (b"@", "Commands that do"),
        ):
            person.listen(0.3)
            person.type(keys)
            person.shows(text)
        person.type(b"\x1b")
        person.listen(0.3)
        for place in ("tasks", "audit"):
            person.type(b":")
            person.shows("Go to:")
            person.listen(0.4)
            person.type(place.encode())
            person.shows(place)
            person.listen(0.4)
            person.type(b"\r")
            person.shows(f" adjourn {place}")
        person.listen(0.3)
        rest = _OURS.sub(b"", person.raw)
        found = re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", rest)
        assert found is None, rest[max(0, found.start() - 40) : found.start() + 40]
        assert person.lines[0].startswith(" adjourn audit")
        person.type(b"q")
        assert person.ends() == 0

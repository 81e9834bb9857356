"""What Codex asks for is read as it was meant, however long it is."""

import shlex
import time

from hypothesis import given
from hypothesis import strategies as some

from adjourn.runners.codex.protocol import shell_arguments, words_of


@given(some.text(alphabet="ab '\"\\\\ \t\n\r\x0b\u00a0é$", max_size=12))
def test_a_command_line_has_the_words_that_a_shell_would_see(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        expected = [text]
    assert words_of(text) == expected


def test_a_command_of_megabytes_is_read_at_once() -> None:
    text = 'it\'s "long" \\\\ ' * 200_000
    began = time.process_time()
    assert shell_arguments(shlex.join(["/bin/bash", "-lc", text])) == {
        "command": text,
        "shell": ["/bin/bash", "-lc"],
    }
    assert time.process_time() - began < 10

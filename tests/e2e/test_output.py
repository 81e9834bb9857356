"""What a command prints: too much, no text, and what it looks like to a person."""

import pytest

from tests.e2e.shell import Shell

GIBIBYTE = 1 << 30


def test_a_gibibyte_is_capped_and_the_end_of_it_is_kept(shell: Shell) -> None:
    """The head and the tail, a line that says how much is missing, and the exit code that counts."""
    manifest = shell.paused(
        "sh",
        "-c",
        f"yes 'all work and no play' | head -c {GIBIBYTE}; echo; echo '{{\"asks\": 1}}'; exit 90",
    )
    assert manifest["asks"][0]["manifest"] == '{"asks": 1}'
    place = shell.store / "runs" / manifest["run_id"]
    assert (place / "stdout").stat().st_size < 64 << 20
    logs = shell.adjourn("logs", manifest["task_id"]).raw
    assert logs.startswith(b"all work and no play\n")
    assert b"bytes left out here]" in logs
    assert logs.endswith(b'{"asks": 1}\n')


def test_a_torrent_in_the_foreground_passes_through(shell: Shell) -> None:
    done = shell.adjourn("run", "--", shell.agent("torrent.py"), "40")
    assert done.raw.startswith(b"all work")
    assert done.raw.endswith(b"\nthe end\n")
    assert b"bytes left out here]" in done.raw


@pytest.mark.parametrize("stream", [1, 2])
def test_bytes_that_are_no_text_come_through_as_they_are(shell: Shell, stream: int) -> None:
    """To a pipe or a file byte for byte; in JSON and in the manifest as text that can be read."""
    octal = "".join(f"\\{byte:03o}" for byte in range(256))
    everything = bytes(range(256))
    manifest = shell.paused("sh", "-c", f"printf '{octal}' >&{stream}; exit 90")
    done = shell.adjourn("logs", manifest["task_id"])
    assert (done.raw, done.raw_err)[stream - 1] == everything
    document = shell.json("logs", manifest["task_id"])
    assert "\ufffd" in document["stdout"] + document["stderr"]
    foreground = shell.adjourn("run", "--", "sh", "-c", f"printf '{octal}' >&{stream}")
    assert (foreground.raw, foreground.raw_err)[stream - 1] == everything


def test_a_last_line_that_is_no_text_does_not_spoil_the_document(shell: Shell) -> None:
    done = shell.json("run", "--", "sh", "-c", "printf 'caf\\351 \\033[31m\\000\\n'")
    assert done["outcome"] == "completed"
    assert "\x1b" not in shell.adjourn("runs", done["task_id"]).out
    assert "\x1b" not in shell.adjourn("show", done["task_id"], "--full").out


@pytest.mark.parametrize(
    "words",
    [
        '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"a": 1' + "}" * 3,
        "{" * 10_000,
        '{"a": "' + "x" * 400_000 + '"}',
        '{"a": "\\ud800"}',
        '{"a": 1e999}',
        '{"a": "\\u0000\\u001b[2J"}',
    ],
)
def test_a_manifest_that_is_hostile_is_words_and_nothing_more(shell: Shell, words: str) -> None:
    (shell.place / "words").write_text(words)
    manifest = shell.paused("sh", "-c", "cat words; echo; exit 90")
    text = shell.adjourn("show", manifest["task_id"]).out
    assert "\x1b" not in text
    assert "\x00" not in text
    shell.adjourn("inbox")
    shell.adjourn("reject", manifest["asks"][0]["id"])


def test_output_of_a_task_that_prints_nothing_is_empty(shell: Shell) -> None:
    task = shell.json("run", "--", "true")["task_id"]
    assert shell.adjourn("logs", task).raw == b""
    assert shell.json("show", task)["final_message"] is None

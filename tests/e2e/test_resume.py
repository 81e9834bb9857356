"""The words of `resume`, and of its short spelling `-c`."""

from pathlib import Path

import pytest

import adjourn
from tests.e2e.shell import Shell


@pytest.mark.parametrize("spelling", ["resume", "-c"])
def test_a_call_is_approved_by_its_name(shell: Shell, spelling: str) -> None:
    """A-R36, A-R58: by checkpoint or task, with a value if you like."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.adjourn(spelling, manifest["checkpoint_id"], "--approve", "tc_2", "--value", "sure")
    assert shell.lines("effects") == ["done with sure"]


@pytest.mark.parametrize(
    "words",
    [
        ("--approve-all",),
        ("--approve", "tc_2", "--approve", "tc_2"),
        ("--approve-all", "--approve", "tc_2"),
    ],
)
def test_all_calls_are_approved_at_once(shell: Shell, words: tuple[str, ...]) -> None:
    """A-R38, A-R43, A-R75."""
    manifest = shell.paused(shell.agent("approved.sh"))
    shell.adjourn("-c", manifest["checkpoint_id"], *words)
    assert shell.lines("effects") == ["done with approved"]


@pytest.mark.parametrize(
    "words", [("--reject", "tc_2"), ("--reject-all",), ("--approve-all", "--reject", "tc_2")]
)
def test_a_rejection_by_resume_is_final(shell: Shell, words: tuple[str, ...]) -> None:
    """A-R37, A-R39, A-R41: the named rejection wins over --approve-all, and nothing is started."""
    manifest = shell.paused(shell.agent("approved.sh"))
    done = shell.json("resume", manifest["checkpoint_id"], *words, "--reason", "too dear", expect=1)
    assert done["outcome"] == "failed"
    assert "too dear" in done["error"]["message"]
    assert len(shell.lines("starts")) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("text", "--approve-all"), 2),
        (("--answer", "a=b", "--approve", "tc_2"), 2),
        (("--approve-all", "--reject-all"), 2),
        (("--approve", "tc_2", "--reject", "tc_2"), 2),
        (("--approve", "tc_1"), 2),
        (("--approve", "tc_99"), 2),
        (("--reject", "../../x"), 2),
        (("some text",), 2),
        (("--answer", "nobody=asked"), 2),
        (("--value", "v"), 2),
        (("--reason", "r"), 2),
    ],
)
def test_words_that_do_not_fit_change_nothing(
    shell: Shell, words: tuple[str, ...], code: int
) -> None:
    """A-R20, A-R60: decisions or a text, never both; only what is pending can be decided."""
    manifest = shell.paused(shell.agent("approved.sh"))
    told = shell.adjourn("resume", manifest["task_id"], *words, expect=code)
    assert "try:" in told.err
    assert [ask["state"] for ask in shell.inbox()] == ["pending"]
    assert len(shell.runs(manifest["task_id"])) == 1


def test_a_resume_without_words_prints_the_manifest_again(shell: Shell) -> None:
    """D-R15: with asks open it changes nothing and exits 10."""
    manifest = shell.paused(shell.agent("approved.sh"))
    assert shell.json("resume", manifest["task_id"], expect=10) == manifest
    assert shell.json("show", manifest["task_id"]).items() >= manifest.items()
    assert len(shell.runs(manifest["task_id"])) == 1


def test_an_old_checkpoint_is_refused_and_names_the_newest(shell: Shell) -> None:
    """Every pause makes a new checkpoint; what an old one stands for has been decided."""
    first = shell.paused(shell.agent("deploy.sh"))
    second = shell.adjourn("-c", first["checkpoint_id"], "eu", "--output", "json", expect=10).doc
    for words in ((), ("--approve-all",), ("us",)):
        told = shell.adjourn("-c", first["checkpoint_id"], *words, expect=4)
        assert second["checkpoint_id"] in told.err
    assert shell.lines("effects") == []
    shell.adjourn("-c", second["checkpoint_id"], "--approve-all")
    assert (
        shell.json("resume", first["checkpoint_id"], expect=4)["error"]["code"]
        == "stale_checkpoint"
    )


def test_a_unique_prefix_of_a_task_or_checkpoint_will_do(shell: Shell) -> None:
    """A-R5."""
    first = shell.paused(shell.agent("deploy.sh"))
    second = shell.adjourn("resume", first["task_id"][:9], "eu", "--output", "json", expect=10).doc
    shell.adjourn("-c", second["checkpoint_id"][:9], "--approve-all")
    assert shell.state(first["task_id"][:12]) == "succeeded"


@pytest.mark.parametrize("command", [("true",), ("false",)])
def test_what_is_not_paused_cannot_be_resumed(shell: Shell, command: tuple[str, ...]) -> None:
    """A-R60, D-R16: an error that says so, and nothing is started."""
    task = shell.adjourn("run", "--output", "json", "--", *command, expect=None).doc["task_id"]
    told = shell.adjourn("resume", task, expect=4)
    assert "nothing to resume" in told.err
    assert f"adjourn restart {task}" in told.err
    assert len(shell.runs(task)) == 1


def test_a_resume_of_the_unknown_is_not_found(shell: Shell) -> None:
    """A-R60."""
    shell.paused(shell.agent("approved.sh"))
    shell.adjourn("resume", "a" * 26, "--approve-all", expect=3)
    assert len(shell.lines("starts")) == 1


def test_the_controller_knows_no_flags() -> None:
    """A-R59: words become replies in a layer of their own.

    What changes tasks never sees a command line.
    """
    package = Path(adjourn.__file__).parent
    for path in (package / "controller").rglob("*.py"):
        assert "--approve" not in path.read_text(), path
    assert "approve_all" in (package / "core" / "resumption.py").read_text()


def test_who_comes_second_is_told_who_was_first_when_and_what(shell: Shell) -> None:
    """C-R14: the first reply wins, whatever the second says and however it is said."""
    manifest = shell.paused(shell.agent("approved.sh"))
    ask = shell.inbox()[0]["id"]
    settled = shell.json("approve", ask, "--value", "fine by me")["asks"][0]
    ways = [("approve", ask), ("reject", ask), ("resume", manifest["task_id"], "--reject", "tc_2")]
    for words in ways:
        told = shell.adjourn(*words, expect=4).err
        for fact in ("approved", settled["settled_by"], settled["settled_at"], "fine by me"):
            assert fact in told, words
    shell.adjourn("resume", manifest["task_id"])
    assert shell.lines("effects") == ["done with fine by me"]

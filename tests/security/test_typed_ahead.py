"""Keys that were pressed before a question was on the screen decide nothing."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import CTRL_C, Terminal
from tests.plans.planner import Planner, noted

pytestmark = pytest.mark.serial

QUESTION = "later (Enter)?"


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Planner]:
    """Return a shell with a plan whose first task takes a second, and is reviewed."""
    shell = Planner(tmp_path)
    slow = {"id": "write", "run": "sleep 1; echo wrote >> effects", "review": True}
    shell.plan(slow, noted("next", "write"))
    yield shell
    assert shell.end() == {}


def hold(person: Terminal, keys: bytes, *, seconds: float) -> None:
    """Press keys again and again, as a key that is held down repeats."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        person.type(keys)
        person.listen(0.03)


@pytest.mark.parametrize("keys", [b"a\n", b"a", b"s\na\napprove\n"])
def test_keys_typed_before_a_review_is_shown_approve_nothing(work: Planner, keys: bytes) -> None:
    with Terminal(work, "execute") as person:
        person.sees("[write] task")
        person.type(keys)
        person.sees(QUESTION)
        person.listen(0.5)
        assert person.code is None
        assert len(work.inbox()) == 1
        person.type(b"\n")  # a half line that was left would be approved by it
        assert person.ends() == 10
    assert work.effects == ["wrote"]
    assert len(work.inbox()) == 1


def test_keys_that_are_held_while_a_review_appears_approve_nothing(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("[write] task")
        hold(person, b"a\n", seconds=3)
        assert QUESTION not in person.raw.decode()  # it waits until the keyboard is silent
        person.sees(QUESTION)
        assert len(work.inbox()) == 1
        person.type(CTRL_C)
        assert person.ends() == 10
    assert work.effects == ["wrote"]


def test_lines_that_are_pasted_at_once_approve_nothing(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees(QUESTION)
        person.type(b"a\nmake deploy\n")
        person.sees("Several lines came at once")
        assert len(work.inbox()) == 1
        person.type(b"a\n")
        assert person.ends() == 0
    assert work.effects == ["wrote", "next"]


def test_ctrl_c_ends_the_wait_for_silence(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("is the work of write good?")
        person.type(CTRL_C)
        assert person.ends() == 10
    assert len(work.inbox()) == 1


def test_a_terminal_that_closes_decides_nothing(work: Planner) -> None:
    with Terminal(work, "execute") as person:
        person.sees("is the work of write good?")
        assert person.hang_up() == 10
    assert len(work.inbox()) == 1


@pytest.mark.parametrize("keys", [b"y\ny\n", b"y"])
def test_keys_typed_before_an_edit_is_shown_approve_nothing(shell: Shell, keys: bytes) -> None:
    manifest = shell.paused("sh", "-c", "exit 90")
    ask = manifest["asks"][0]["id"]
    with Terminal(shell, "approve", ask, "--set", "argv.2=touch ran") as person:
        person.type(keys)
        person.sees("Approve it so?")
        person.listen(0.5)
        assert person.code is None
        person.type(b"\n")
        assert person.ends() == 2
    assert [each["id"] for each in shell.inbox()] == [ask]


def test_lines_that_are_pasted_at_once_approve_no_edit(shell: Shell) -> None:
    manifest = shell.paused("sh", "-c", "exit 90")
    ask = manifest["asks"][0]["id"]
    with Terminal(shell, "approve", ask, "--set", "argv.2=touch ran") as person:
        person.sees("Approve it so?")
        person.type(b"y\nmake deploy\n")
        assert person.ends() == 2
    assert [each["id"] for each in shell.inbox()] == [ask]

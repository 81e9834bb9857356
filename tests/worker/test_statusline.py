"""What a worker shows on a terminal.

One line below its log, rewritten when something changes, and gone with it.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.shell import Shell
from tests.e2e.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.serial


@pytest.fixture
def person(shell: Shell) -> Iterator[Terminal]:
    """Return a terminal in which a worker is at work."""
    shell.json("run", "--", "true")
    with Terminal(shell, "worker", columns=90) as terminal:
        terminal.sees("0 of 4 active")
        yield terminal


def test_the_last_line_tells_how_the_worker_stands(shell: Shell, person: Terminal) -> None:
    shell.json("run", "--detach", "--", shell.agent("approved.sh"))
    person.sees("1 ask waits")
    shell.json("run", "--detach", "--", "sleep", "60")
    person.sees("1 of 4 active")
    person.listen(0.5)
    assert person.lines[-1].startswith(
        "1 of 4 active, 0 queued, 1 ask waits (adjourn inbox); started "
    )
    assert sum("active," in line for line in person.lines) == 1
    person.type(CTRL_C)
    assert person.ends() == 0
    assert "worker stopped" in person.lines[-1]
    assert not any("of 4 active" in line for line in person.lines)
    assert any("draining active=1" in line for line in person.lines)


def test_it_writes_nothing_while_nothing_changes(shell: Shell, person: Terminal) -> None:
    person.listen(1)
    before = person.raw
    person.listen(6)  # one look and more
    assert person.raw == before
    assert shell.json("worker", "--status")["workers"]
    person.type(CTRL_C)
    assert person.ends() == 0


def test_a_line_that_does_not_fit_is_cut(shell: Shell) -> None:
    shell.json("run", "--", "true")
    with Terminal(shell, "worker", columns=30) as person:
        person.sees("0 of 4 active")
        person.listen(0.5)
        assert len(person.lines[-1]) < 30
        person.type(CTRL_C)
        assert person.ends() == 0


@pytest.mark.parametrize("words", [(), ("--log-format", "json")])
def test_a_log_has_no_such_line(shell: Shell, words: tuple[str, ...]) -> None:
    shell.json("run", "--", "true")
    worked = shell.adjourn("worker", "--once", *words)
    assert "active," not in worked.err
    assert "\x1b" not in worked.err


def test_a_terminal_that_goes_away_ends_the_worker_and_nothing_else(
    shell: Shell, person: Terminal
) -> None:
    task = shell.json("run", "--detach", "--", "sleep", "60")["task_id"]
    person.sees("1 of 4 active")
    assert person.hang_up() == 0
    assert shell.state(task) == "paused"

"""What compares pages with reality finds every difference that matters."""

import pytest

from tests.docs.page import Block, steps
from tests.docs.transcript import Transcript

TASK, OTHER = "zysrmhywjl3gme7odm4aqfofvq", "btn7e3kcocauv3mb3tellsj544"
REAL, REAL_OTHER = "a" * 26, "b" * 26


@pytest.mark.parametrize(
    ("shown", "happened"),
    [
        (["Paused."], ["Paused."]),
        ([f"task {TASK}"], [f"task {REAL}"]),
        ([f"{TASK} {TASK}"], [f"{REAL} {REAL}"]),
        (["NAME   SINCE     WHAT"], ["NAME  SINCE  WHAT"]),
        (["x  now  y"], ["x  3m 2s ago  y"]),
        (["took 0.2s"], ["took 1m 3s"]),
        (["at 2026-11-16T00:23:45.767Z"], ["at 2031-01-01T11:11:11.000Z"]),
        (["in /srv/project/x"], ["in /tmp/place/x"]),
        (["by uid:… at noon"], ["by uid:1000 at noon"]),
        (["first", "…", "last"], ["first", "second", "third", "last"]),
        (["first", "…"], ["first"]),
    ],
)
def test_what_may_differ_may_differ(shown: list[str], happened: list[str]) -> None:
    assert Transcript("/tmp/place").difference(tuple(shown), happened) is None


@pytest.mark.parametrize(
    ("shown", "happened"),
    [
        (["Paused."], ["Failed."]),
        (["Paused."], []),
        ([], ["Paused."]),
        (["a", "b"], ["a"]),
        (["a"], ["a", "b"]),
        ([f"{TASK} {TASK}"], [f"{REAL} {REAL_OTHER}"]),
        ([f"task {TASK}"], ["task unknown"]),
        (["10"], ["1"]),
        (["first", "…", "last"], ["first", "second"]),
    ],
)
def test_any_other_difference_is_found(shown: list[str], happened: list[str]) -> None:
    assert Transcript("/tmp/place").difference(tuple(shown), happened) is not None


def test_an_id_of_the_page_stands_for_the_same_thing_to_its_end() -> None:
    transcript = Transcript("/tmp/place")
    assert transcript.difference((f"{TASK} asks {OTHER}",), [f"{REAL} asks {REAL_OTHER}"]) is None
    assert (
        transcript.typed(f"adjourn resume {TASK} {OTHER[:8]}")
        == f"adjourn resume {REAL} {REAL_OTHER[:8]}"
    )
    assert transcript.difference((f"{TASK[:8]} waits",), [f"{REAL[:8]} waits"]) is None
    assert transcript.difference((f"{TASK[:8]} waits",), [f"{REAL_OTHER[:8]} waits"]) is not None


def test_a_command_goes_on_in_the_next_line_and_output_belongs_to_the_command_above_it() -> None:
    block = Block("console", "", ("$ cat <<E", "> x", "> E", "x", "$ true"), 7)
    assert [(step.command, step.output, step.line) for step in steps(block)] == [
        ("cat <<E\nx\nE", ("x",), 8),
        ("true", (), 12),
    ]

"""What the exit of any command means: the whole table."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.outcome import (
    Completed,
    Exit,
    Failed,
    Interrupted,
    Outcome,
    Standing,
    Waits,
    WantsApproval,
)
from adjourn.runners.command import CommandRunner, last_json_object, last_line

OPEN = Standing(open_asks=("ask-1", "ask-2"))
SETTLED = Standing(settled_asks=True)
BOTH = Standing(open_asks=("ask-1", "ask-2"), settled_asks=True)
NOTHING = Standing()
CHILD = Standing(open_children=("task-b",))
CHILD_DONE = Standing(ended_children=True)
APPROVED = Standing(was_approved=True)
APPROVED_PLAN = Standing(was_approved=True, approved_manifest='{"plan": 1}')

EXIT_0, EXIT_1, EXIT_10, EXIT_90 = (Exit(code=code) for code in (0, 1, 10, 90))
KILLED = Exit(signal=9)
LEAVES = [EXIT_10, EXIT_90]
ENDINGS = [Exit(code=code) for code in (1, 2, 3, 9, 11, 89, 91, 127, 130, 255)] + [
    Exit(signal=number) for number in (1, 2, 6, 9, 15)
]


def meaning(exit_: Exit, standing: Standing = NOTHING, *, output: str = "") -> Outcome:
    return CommandRunner().meaning(
        Exit(code=exit_.code, signal=exit_.signal, output=output), standing
    )


@pytest.mark.parametrize("exit_", [EXIT_0, *LEAVES], ids=repr)
@pytest.mark.parametrize("standing", [OPEN, SETTLED, BOTH], ids=["open", "settled", "both"])
def test_open_asks_and_exit_0_10_or_90_is_waiting(exit_: Exit, standing: Standing) -> None:
    """A-R23, C-R1: also if they were settled while the process was on its way out."""
    assert meaning(exit_, standing) == Waits()


@pytest.mark.parametrize("exit_", ENDINGS, ids=repr)
@pytest.mark.parametrize("standing", [OPEN, BOTH], ids=["open", "both"])
def test_open_asks_and_any_other_end_is_a_failure_that_names_them(
    exit_: Exit, standing: Standing
) -> None:
    """A-R22: never waiting on a script that crashed, and never silent about what it had asked."""
    outcome = meaning(exit_, standing)
    assert isinstance(outcome, Failed)
    assert "(ask-1, ask-2): did the script drop exit code 10?" in outcome.reason
    assert ("signal" in outcome.reason) == (exit_.signal is not None)


@pytest.mark.parametrize("exit_", ENDINGS, ids=repr)
@pytest.mark.parametrize(
    "standing",
    [NOTHING, SETTLED, CHILD_DONE, APPROVED],
    ids=["none", "settled", "done", "approved"],
)
def test_any_other_end_is_a_failure(exit_: Exit, standing: Standing) -> None:
    """A-R22, A-R52: only 10 and 90 are a pause."""
    assert meaning(exit_, standing) == Failed(
        f"signal {exit_.signal}" if exit_.signal else f"exit code {exit_.code}"
    )


@pytest.mark.parametrize("exit_", LEAVES, ids=repr)
def test_10_and_90_without_asks_want_approval_of_the_command_itself(exit_: Exit) -> None:
    """C-R1, C-R2, A-R7, A-R23: a foreign program needs to know nothing but the exit code."""
    assert meaning(exit_) == WantsApproval(None)


@pytest.mark.parametrize("exit_", LEAVES, ids=repr)
def test_the_last_json_object_on_stdout_is_the_manifest(exit_: Exit) -> None:
    """A-R8: kept and shown, never interpreted."""
    assert meaning(exit_, output='planning\n{"plan": 1}\n') == WantsApproval('{"plan": 1}')


@pytest.mark.parametrize("exit_", LEAVES, ids=repr)
@pytest.mark.parametrize(
    ("standing", "output"),
    [
        (APPROVED, ""),
        (APPROVED, "no manifest"),
        (APPROVED_PLAN, ""),
        (APPROVED_PLAN, 'again\n{"plan": 1}\n'),
    ],
    ids=["no manifest", "no manifest, but words", "a manifest no more", "the same manifest"],
)
def test_again_after_approval_with_nothing_new_is_a_failure(
    exit_: Exit, standing: Standing, output: str
) -> None:
    """C-R23: a tool that does not know the contract does not loop without end."""
    outcome = meaning(exit_, standing, output=output)
    assert isinstance(outcome, Failed)
    assert "AUTO_APPROVAL" in outcome.reason


@pytest.mark.parametrize("exit_", LEAVES, ids=repr)
@pytest.mark.parametrize(
    "standing", [APPROVED, APPROVED_PLAN], ids=["none before", "another before"]
)
def test_again_after_approval_with_a_different_manifest_is_a_new_ask(
    exit_: Exit, standing: Standing
) -> None:
    """C-R23, A-R50: a program with several things to approve asks for each."""
    assert meaning(exit_, standing, output='{"plan": 2}') == WantsApproval('{"plan": 2}')


@pytest.mark.parametrize("exit_", LEAVES, ids=repr)
@pytest.mark.parametrize("standing", [CHILD, CHILD_DONE], ids=["open", "done"])
def test_a_script_that_leaves_because_a_child_waits_gets_no_ask_of_its_own(
    exit_: Exit, standing: Standing
) -> None:
    """A child that ended meanwhile counts too: the script has not seen it end."""
    assert meaning(exit_, standing, output='{"plan": 1}') == Waits()


@pytest.mark.parametrize("exit_", ENDINGS, ids=repr)
def test_any_other_end_while_a_child_is_not_done_is_a_failure_that_names_it(exit_: Exit) -> None:
    """A-R22: never silent about what it had started."""
    outcome = meaning(exit_, CHILD)
    assert isinstance(outcome, Failed)
    assert "(task-b): did the script drop exit code 10?" in outcome.reason


def test_exit_0_while_a_child_is_not_done_is_waiting() -> None:
    """A-R23: as with open asks."""
    assert meaning(EXIT_0, CHILD, output="all done") == Waits()


@pytest.mark.parametrize("standing", [NOTHING, CHILD_DONE, APPROVED, APPROVED_PLAN], ids=range(4))
def test_exit_0_without_asks_is_completion_with_the_last_line_as_its_message(
    standing: Standing,
) -> None:
    """A-R21, A-R30"""
    assert meaning(EXIT_0, standing, output="one\nall done\n\n") == Completed("all done")
    assert meaning(EXIT_0, standing) == Completed(None)


EVERY_STANDING = [
    Standing(
        open_asks=asks,
        settled_asks=settled,
        open_children=children,
        ended_children=ended,
        was_approved=approved,
    )
    for asks, settled, children, ended, approved in product(
        [(), ("ask-1",)], [False, True], [(), ("task-b",)], [False, True], [False, True]
    )
]


@pytest.mark.parametrize("code", [None, 0, 1, 10, 90])
def test_an_interrupt_is_a_pause_whatever_the_exit(code: int | None) -> None:
    """D-R13: killed after the grace or not, it was interrupted."""
    exit_ = Exit(code=code, signal=9 if code is None else None, interrupted=True)
    for standing in EVERY_STANDING:
        assert CommandRunner().meaning(exit_, standing) == Interrupted()


def test_a_command_that_could_not_be_started_failed_for_that_reason() -> None:
    for standing in EVERY_STANDING:
        assert CommandRunner().meaning(Exit(error="no such file: ./deploy.sh"), standing) == Failed(
            "no such file: ./deploy.sh"
        )


@pytest.mark.parametrize("exit_", [*ENDINGS, KILLED, Exit()], ids=range(len(ENDINGS) + 2))
def test_what_did_not_exit_0_10_or_90_never_completes_and_never_waits(exit_: Exit) -> None:
    """An exit that nobody saw is never success."""
    for standing in EVERY_STANDING:
        assert isinstance(meaning(exit_, standing), Failed)


# --- last words -----------------------------------------------------------------------------------

OBJECTS = {
    '{"a": 1}': '{"a": 1}',
    'log\n{"a": 1}\n': '{"a": 1}',
    '{"a": 1}\n{"b": 2}\n': '{"b": 2}',
    '{\n  "a": {\n    "b": {}\n  }\n}\n\n': '{\n  "a": {\n    "b": {}\n  }\n}',
    '{"a": "}"}': '{"a": "}"}',
    '{"a": "\\n{"}': '{"a": "\\n{"}',
    '{"a": 1}\r\n': '{"a": 1}',
    "{}": "{}",
    "": None,
    "\n": None,
    "}": None,
    "{": None,
    "words }": None,
    "[1, 2]": None,
    '"{}"': None,
    "{'a': 1}": None,
    '{"a": 1': None,
    '{"a": 1}}': '{"a": 1}',
    '{"a": 1}\nand more words': '{"a": 1}',
    '{"a": NaN}': None,
}


@pytest.mark.parametrize(("output", "found"), OBJECTS.items(), ids=range(len(OBJECTS)))
def test_the_last_json_object_is_found(output: str, found: str | None) -> None:
    assert last_json_object(output) == found


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=12,
)
json_objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=4
)


@given(json_objects, st.sampled_from([None, 2]), st.booleans(), st.text('ab{}\n" ', max_size=20))
def test_whatever_object_a_program_prints_last_is_the_one_found(
    value: dict[str, object],
    indent: int | None,
    ascii_only: bool,  # noqa: FBT001 -- drawn by Hypothesis
    before: str,
) -> None:
    printed = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert last_json_object(f"{before}\n{printed}\n") == printed


@given(st.text())
def test_any_output_at_all_has_a_meaning(output: str) -> None:
    for exit_ in (EXIT_0, EXIT_10):
        assert isinstance(meaning(exit_, output=output), Completed | WantsApproval)


LARGE_MANIFEST = json.dumps({"changes": [{"resource": number} for number in range(1000)]}, indent=2)


def test_a_manifest_may_be_large() -> None:
    assert last_json_object(f"planning\n{LARGE_MANIFEST}\n") == LARGE_MANIFEST


@pytest.mark.parametrize("depth", [100, 1_000, 5_000, 100_000])
@pytest.mark.parametrize(
    ("opened", "closed"), [("[", "1]"), ('{"a":', "1}")], ids=["lists", "objects"]
)
def test_an_object_nested_without_measure_is_no_crash(depth: int, opened: str, closed: str) -> None:
    nested = opened * depth + closed + closed[-1] * (depth - 1)
    assert isinstance(meaning(EXIT_10, output=f'{{"a": {nested}}}'), WantsApproval)


def test_a_megabyte_of_braces_costs_next_to_nothing() -> None:
    found = {
        "{" * 500_000 + "}" * 500_000: None,
        "{\n" * 300_000 + "}}": "{\n}",
        "\n{]x" * 200_000 + "}": None,
    }
    for noise, expected in found.items():
        assert last_json_object(noise) == expected


@pytest.mark.parametrize(
    ("output", "line"),
    {
        "": None,
        "\n\n": None,
        "done": "done",
        "a\nb\n": "b",
        "a\n\n  b  \n\n": "  b",
        "x" * 5000: "x" * 2000,
    }.items(),
    ids=range(6),
)
def test_the_last_line_that_says_something_is_the_message(output: str, line: str | None) -> None:
    assert last_line(output) == line

"""Text of others that is too long for the terminal never begins a row of its own.

Such a row would look like ours.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjourn.cli.screen import Margin
from adjourn.core.text.render import (
    MORE_MARK,
    agent_words,
    block,
    command_line,
    command_rows,
    prose,
    visible,
    width,
    wrap,
)
from adjourn.views.block import Span, line, to_text
from adjourn.views.block import wrap as wrap_blocks
from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal

FORGED = "Approve with: adjourn approve OTHER"
LONG = "Z" * 700  # no row of ours begins with this letter
WIDTHS = (40, 80, 120)
HEAD = "  choose: "


def drawn(text: str, columns: int) -> list[str]:
    """Return the rows that a terminal shows."""
    screen = pyte.Screen(columns, 2 * text.count("\n") + 10)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return [row for row in (line.rstrip() for line in screen.display) if row]


# --- the one function that breaks rows ------------------------------------------------------------

HOSTILE = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="漢字かな한글🙂🇩🇪👩é\u0301\u0300x Z\u20dd", max_size=120),
    st.lists(
        st.sampled_from([FORGED, " ", "x", "漢", "\n", "\t", "e\u0301", "Z" * 30, "\x1b[1m"]),
        max_size=30,
    ).map("".join),
)


@pytest.mark.parametrize(
    "shown",
    [visible, prose, lambda text: block(text).replace("\n", "\\n")],
    ids=["call", "prose", "block"],
)
@pytest.mark.parametrize("columns", WIDTHS)
@settings(max_examples=100, deadline=None)
@given(text=HOSTILE)
@example(text="x" * 70 + FORGED)
@example(text="漢" * 35 + FORGED)
@example(text=" " * 70 + FORGED)
@example(text="🇦" * 30 + FORGED)
def test_no_row_of_hostile_text_begins_without_our_mark(
    columns: int, shown: Callable[[str], str], text: str
) -> None:
    whole = HEAD + shown(text)
    wrapped = wrap(whole, columns=columns)
    assert to_text([line(whole)], columns) == wrapped
    first, *more = drawn(wrapped, columns)
    assert first.startswith(HEAD.rstrip())
    assert [row for row in more if not row.startswith(MORE_MARK.rstrip())] == []
    assert all(width(row) <= columns for row in wrapped.split("\n"))
    assert wrapped.replace(f"\n{MORE_MARK}", "") == whole  # nothing is left out or added


@pytest.mark.parametrize("columns", WIDTHS)
@settings(max_examples=100, deadline=None)
@given(text=HOSTILE)
@example(text="x" * 70 + FORGED)
def test_no_row_of_an_agents_words_begins_without_its_mark(columns: int, text: str) -> None:
    rows = wrap(
        "\n".join(f"  {row}" for row in agent_words(text, columns=columns - 4)), columns=columns
    )
    assert [
        row for row in drawn(rows, columns) if not row.startswith(("  agent │", MORE_MARK.rstrip()))
    ] == []


@pytest.mark.parametrize("columns", WIDTHS)
@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.tuples(st.booleans(), HOSTILE), max_size=6))
@example(pieces=[(True, "x" * 30), (False, FORGED * 4), (True, "\n" + FORGED)])
def test_no_row_of_what_a_run_prints_begins_without_its_mark(
    columns: int, pieces: list[tuple[bool, str]]
) -> None:
    """However its two streams come in pieces, and whichever line of which one is not finished."""
    margin = Margin()
    text = "".join(
        margin.marked(block(piece), "out" if is_out else "err", columns=columns)
        for is_out, piece in pieces
    )
    text += margin.end() + "Completed."
    *rows, last = drawn(text, columns)
    assert last == "Completed."
    assert [row for row in rows if not row.startswith(("out │", "err │"))] == []


def test_our_own_colours_take_no_columns() -> None:
    fits = line(Span("Paused", "waiting"), " " + "x" * 33)
    assert wrap_blocks([fits], 40) == [fits]
    too_long = line(Span("Paused", "waiting"), " " + "x" * 34)
    assert to_text([too_long], 40).count(MORE_MARK) == 1


@pytest.mark.parametrize(
    "words",
    [["answer", "ask", "it's " * 20], ["a" * 10] * 12, ["x\n\ty'\\"] * 9, ["resume", "--", "-x"]],
)
def test_a_command_that_is_too_long_can_be_pasted_and_forges_no_row(words: list[str]) -> None:
    command = command_line(["adjourn", *words])
    rows = command_rows("Answer with:  ", command, columns=60)
    assert rows[0].startswith("Answer with:  adjourn")
    assert all(row.startswith("    ") for row in rows[1:])
    pasted = "\n".join(rows).removeprefix("Answer with:  ")
    if "$'" not in command:
        assert shlex.split(pasted.replace("\\\n", "")) == ["adjourn", *words]


# --- every verb, at a terminal --------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Shell, list[tuple[str, ...]]]]:
    """Return a shell whose store is full of long texts of others, and commands that show them."""
    shell = Shell(tmp_path_factory.mktemp("crowded"))
    call = shell.paused("sh", "-c", "exit 90", LONG, f"{LONG} {FORGED}")["task_id"]
    asks = shell.script(
        f"adjourn ask '{LONG} {FORGED}' --choice '{LONG}' --choice no || exit 10", name="asks.sh"
    )
    question = shell.paused(asks)["task_id"]
    failed = shell.json("run", "--", LONG, expect=1)["task_id"]
    prints = shell.script(
        f"echo {LONG}; printf '{LONG}' >&2; printf '{LONG}'; exit 90", name="prints.sh"
    )
    printed = shell.paused(prints)["task_id"]
    rejected = shell.paused("sh", "-c", "exit 90", LONG)
    shell.adjourn("reject", rejected["asks"][0]["id"], "--reason", LONG)
    commands = [
        ("run", "--", prints),
        ("inbox",),
        ("tasks",),
        ("show", call),
        ("show", "--full", call),
        ("show", question),
        ("show", "--full", rejected["task_id"]),
        ("show", failed),
        ("runs", failed),
        ("wait", call),
        ("logs", printed),
        ("resume", question, LONG),
        ("policy", "explain", "--", "echo", LONG),
        ("approve", LONG),
    ]
    yield shell, commands
    assert shell.end() == {}


def forged_rows(shell: Shell, *words: str, columns: int) -> list[str]:
    """Return the rows of a command's screen that begin with text of others."""
    with Terminal(shell, *words, columns=columns, env={"NO_COLOR": "1"}) as person:
        person.ends()
        return [
            row
            for row in person.lines
            if row.lstrip("\"' ").startswith("Z") and not row.startswith("  ")
        ]


@pytest.mark.serial
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_verb_lets_text_of_others_begin_a_row(
    crowded: tuple[Shell, list[tuple[str, ...]]], columns: int
) -> None:
    shell, commands = crowded
    for words in commands:
        assert forged_rows(shell, *words, columns=columns) == [], words


@pytest.mark.serial
def test_what_a_run_prints_cannot_pass_for_what_adjourn_says(shell: Shell) -> None:
    forged = f"Paused: 1 thing to settle\n\n{FORGED}"
    script = shell.script(f"printf '{forged}'; exit 90")
    with Terminal(shell, "run", "--", script, columns=80, env={"NO_COLOR": "1"}) as person:
        assert person.ends() == 10
        rows = [row for row in person.lines if row.startswith(("Paused", "Approve with"))]
    assert len(rows) == 2
    assert "OTHER" not in "".join(rows)


def test_a_notification_lets_text_of_others_begin_no_row(shell: Shell) -> None:
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True)
    script = shell.script(
        f"cat >> '{shell.place}/told'; echo >> '{shell.place}/told'", name="notify.sh"
    )
    config.write_text(f'[[notify]]\ncommand = ["{shell.place}/{script}"]\n')
    asks = shell.script(
        f"adjourn ask '{LONG} {FORGED}' --choice '{LONG}' || exit 10", name="Zasks.sh"
    )
    shell.run("cp", asks, "Zasks")
    path = f"{shell.place}:{shell.environment['PATH']}"
    shell.adjourn("run", "--output", "json", "--", "Zasks", LONG, env={"PATH": path}, expect=10)
    shell.adjourn("notify", "--flush")
    told = [json.loads(line)["text"] for line in shell.lines("told")]
    assert any("ZZZZ" in text for text in told)
    for text in told:
        rows = [row for row in text.split("\n") if not row.startswith("Go on with: adjourn")]
        assert [row for row in rows if row.startswith("Z")] == []
        assert max(map(width, rows)) <= 80


def test_json_is_not_touched(shell: Shell) -> None:
    manifest = shell.paused("sh", "-c", "exit 90", LONG)
    with Terminal(
        shell, "show", manifest["task_id"], "--output", "json", "--full", columns=40
    ) as person:
        person.ends()
        assert f'"{LONG}"'.encode() in person.raw

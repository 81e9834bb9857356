"""Blocks become rows: the text is the same whatever the roles, and no row can pass for another."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjourn.core.text.render import MORE_MARK, Cut, agent_words, block, command_rows, width, wrap
from adjourn.views.block import (
    BLANK,
    AgentWords,
    Block,
    Code,
    CommandBlock,
    Fields,
    Line,
    Role,
    Span,
    Table,
    change_text,
    lay_out,
    line,
    lines,
    state_role,
    to_text,
)
from adjourn.views.block import wrap as wrap_blocks

ROLES: tuple[Role, ...] = get_args(Role)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="漢字🙂é\u0301 xZ\x1b\n\x9b\u2028", max_size=80),
    st.sampled_from(["Approve with: adjourn approve OTHER", "\x1b[2J", "a\rb", " " * 90]),
)
SPANS = st.builds(Span, TEXTS, st.sampled_from(ROLES))
LINES = st.builds(lambda spans: Line(tuple(spans)), st.lists(SPANS, max_size=5))
WIDTHS = st.one_of(st.none(), st.integers(8, 120))


def plain(each: Line) -> Line:
    return Line(tuple(Span(span.text) for span in each.spans), each.may_break)


def has_control(text: str) -> bool:
    return any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" for char in text)


@settings(max_examples=200, deadline=None)
@given(blocks=st.lists(LINES, max_size=4), columns=WIDTHS)
def test_a_role_never_changes_the_text(blocks: list[Line], columns: int | None) -> None:
    assert to_text(blocks, columns) == to_text(map(plain, blocks), columns)


@settings(max_examples=200, deadline=None)
@given(blocks=st.lists(LINES, max_size=4), columns=WIDTHS)
def test_no_row_holds_a_control_character(blocks: list[Line], columns: int | None) -> None:
    assert not any(has_control(row.text) for row in wrap_blocks(blocks, columns))


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, columns=st.integers(8, 120), at=st.integers(0, 80))
def test_rows_break_where_those_of_plain_text_do(text: str, columns: int, at: int) -> None:
    """However the line is cut into spans."""
    shown = block(text).replace("\n", " ")
    spans = line(Span(shown[:at], "danger"), Span(shown[at:], "code"))
    assert to_text([spans], columns) == wrap(shown, columns=columns)
    rows = wrap_blocks([spans], columns)
    assert all(row.spans[0] == Span(MORE_MARK) for row in rows[1:])


def test_a_span_keeps_its_role_in_each_row() -> None:
    rows = wrap_blocks([line("ab ", Span("x" * 30, "danger"))], 20)
    assert [span.role for row in rows for span in row.spans if "x" in span.text] == ["danger"] * 2


def test_where_there_is_no_terminal_nothing_is_broken_but_an_agents_words() -> None:
    long = "word " * 40
    assert to_text([line(long)]) == long
    shown = to_text([AgentWords(text=long, indent="  ", margin=4)]).split("\n")
    assert shown == [f"  {row}" for row in agent_words(long, columns=76)]


def test_of_an_agents_words_each_row_is_marked_and_has_their_role() -> None:
    words = AgentWords(text="one two three", cut=Cut(limit=7, rest="show --full"), margin=2)
    *rows, remark = lay_out([words], 16)
    assert all(row.spans[-1].role == "agent_words" for row in rows)
    assert remark.text.startswith("… 6 more characters")
    assert remark.spans[-1].role == "plain"


def test_a_command_goes_on_as_a_shell_reads_it() -> None:
    command = CommandBlock("Then: ", "adjourn answer an-ask 'a long answer'", (Span("Paused. "),))
    rows = command_rows("Then: ", command.command, columns=24)
    assert to_text([command], 30).split("\n")[0].startswith("Paused. Then: adjourn")
    assert [row.text for row in lay_out([command], 24)] == ["Paused. " + rows[0], *rows[1:]]


def test_a_line_that_a_person_pastes_is_never_broken() -> None:
    whole = Line((Span("x" * 100),), may_break=False)
    assert wrap_blocks([whole], 20) == [whole]


def test_a_table_aligns_its_columns_and_gives_its_states_a_role() -> None:
    table = Table(
        head=("ID", "STATE", "NOTE"),
        rows=[("a", "waiting", ""), ("long", "x", "y" * 50)],
        state_column=1,
    )
    head, first, second = lay_out([table], 40)
    assert head.text == "ID    STATE    NOTE"
    assert first.text == "a     waiting"
    assert [span for span in first.spans if span.role == "waiting"] == [Span("waiting", "waiting")]
    assert width(second.text) <= 40
    assert second.text.endswith("…+31")


def test_fields_and_code_are_indented_and_aligned() -> None:
    blocks: list[Block] = [
        Code(lines=('0  "x"',), indent="  "),
        Fields(entries=(("in", Span("/srv")), ("file", Span("a b"))), width=4, indent="  "),
        BLANK,
        *lines(["end"], indent=" "),
    ]
    assert to_text(blocks) == '  0  "x"\n  in   /srv\n  file a b\n\n end'


def test_text_can_be_changed_without_its_roles() -> None:
    assert change_text([line(Span("a", "code"), "b")], str.upper) == [
        line(Span("A", "code"), Span("B"))
    ]


@pytest.mark.parametrize(
    ("word", "role"), [("failed", "danger"), ("approval", "waiting"), ("nothing", "plain")]
)
def test_a_state_has_a_role(word: str, role: Role) -> None:
    assert state_role(word) == role

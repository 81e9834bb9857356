"""The state diagrams in the docs are drawn from the tables."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from adjourn.core.states import (
    ASK_TRANSITIONS,
    CALL_TRANSITIONS,
    TRANSITIONS,
    AskState,
    CallState,
    TaskState,
)

PAGE = Path(__file__).parents[2] / "docs" / "state-machine.md"
TABLES: dict[str, tuple[Mapping[Any, StrEnum], StrEnum]] = {
    "task": (TRANSITIONS, TaskState.QUEUED),
    "call": (CALL_TRANSITIONS, CallState.PENDING),
    "ask": (ASK_TRANSITIONS, AskState.PENDING),
}


def drawn(table: Mapping[Any, StrEnum], first: StrEnum) -> str:
    """Draw a table with Mermaid: every move an arrow, and what cannot be left leads to the end."""
    states = dict.fromkeys([first, *(state for state, _ in table), *table.values()])
    arrows = [
        f"    {state} --> {target}: {move.replace('_', ' ')}"
        for (state, move), target in table.items()
    ]
    last = [f"    {state} --> [*]" for state in states if state not in {left for left, _ in table}]
    return "\n".join(
        ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *arrows, *last, "```"]
    )


def with_diagrams(text: str) -> str:
    """Return the page with every diagram as its table is now."""
    for name, (table, first) in TABLES.items():
        place = re.compile(rf"(<!-- diagram: {name} -->\n).*?(<!-- end of diagram -->)", re.DOTALL)
        text, found = place.subn(rf"\g<1>{drawn(table, first)}\n\g<2>", text)
        assert found == 1, f"the page has no place for the diagram of {name}"
    return text


def test_the_diagrams_in_the_docs_are_those_of_the_tables() -> None:
    page = PAGE.read_text()
    if os.environ.get("REWRITE_DIAGRAMS"):
        PAGE.write_text(with_diagrams(page))
    assert PAGE.read_text() == with_diagrams(page), (
        "say: REWRITE_DIAGRAMS=1 ./dev test tests/stateful/test_diagrams.py"
    )


@pytest.mark.parametrize("name", TABLES)
def test_every_move_of_a_table_is_one_arrow(name: str) -> None:
    table, first = TABLES[name]
    arrows = re.findall(r"^    (\S+) --> (\S+): (.+)$", drawn(table, first), re.MULTILINE)
    assert {(state, move.replace(" ", "_")): target for state, target, move in arrows} == table
    assert len(arrows) == len(table)

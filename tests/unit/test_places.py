"""Every value of a TOML text is found where it stands, however the text is written."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.text.toml import Path, Places

KEYS = st.text("abc_-", min_size=1, max_size=3)
STRINGS = st.sampled_from(
    [
        '"{}"',
        "'{}'",
        '"""{}"""',
        "'''{}'''",
        '"{}\\"]#="',
        '"{} }} , ["',
        '"""{}\n# x = [\n"""',
        "'{}\\'",
    ]
)
LEAVES = STRINGS.map(lambda style: ("leaf", style))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: ("list", items)),
        st.dictionaries(KEYS, inner, max_size=3).map(lambda items: ("table", items)),
    ),
    max_leaves=5,
)
GAPS = st.sampled_from(["", " ", "\n", " # [x = '\n", "\r\n"])
HEADERS = st.sampled_from(["[[rule]]", "[[rule]] # more", "[[other]]"])
DOCUMENTS = st.lists(st.tuples(HEADERS, st.dictionaries(KEYS, VALUES, max_size=4)), max_size=4)


class Writer:
    """Writes TOML, each string of it with a mark that is nowhere else."""

    def __init__(self, gap: str) -> None:
        self._gap = gap
        self.marks = 0

    def value(self, value: Any) -> str:
        kind, content = value
        if kind == "leaf":
            self.marks += 1
            return str(content).format(f"mark{self.marks:04}")
        if kind == "list":
            return (
                "["
                + self._gap
                + ("," + self._gap).join(self.value(item) + self._gap for item in content)
                + "]"
            )
        return (
            "{ " + ", ".join(f"{key} = {self.value(item)}" for key, item in content.items()) + " }"
        )


def marked(found: Any, path: Path = ()) -> dict[Path, str]:
    """Return where the marks are in what the parser made of the text."""
    if isinstance(found, str):
        return {path: found[:8]}
    items = found.items() if isinstance(found, dict) else enumerate(found)
    return {
        place: mark for key, item in items for place, mark in marked(item, (*path, key)).items()
    }


@given(DOCUMENTS, GAPS)
def test_what_the_parser_found_is_found_at_its_place(
    document: list[tuple[str, dict[str, Any]]], gap: str
) -> None:
    writer = Writer(gap)
    lines: list[str] = []
    for header, table in document:
        lines += [header, *(f"{key} = {writer.value(value)}" for key, value in table.items())]
    text = "\n".join(lines)
    marks = marked(tomllib.loads(text))
    places = Places(text)
    rows = text.split("\n")
    assert len(marks) == writer.marks
    for path, mark in marks.items():
        place = places.of_value(path, offset=0)
        assert rows[place.line - 1][place.column - 1 :].startswith(mark)
        assert places.of_key(path[:2]).line <= place.line

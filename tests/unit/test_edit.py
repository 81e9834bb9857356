"""A call as a person would rather have it.

Written for an editor, read back exactly, one argument at a time.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.call import Command, canonical, command_body, command_of, tool_body
from adjourn.core.edit.edit import difference, editable, edited, read_back, with_argument, written
from adjourn.core.errors import Misuse
from adjourn.testing.values import a_call, a_spec
from tests.hostile import HOSTILE_WORDS

SPEC = a_spec(argv=("./deploy.sh", "--env", "prod"))
SHOWN = Command(
    argv=(*SPEC.argv, "--approval-decision=approved"),
    cwd=SPEC.workspace,
    env={"AUTO_APPROVAL": "approved"},
)
CALL = a_call(body=command_body(SHOWN))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


# --- in an editor ---------------------------------------------------------------------------------


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_nobody_touched_reads_back_as_it_was(arguments: dict[str, Any]) -> None:
    arguments = msgspec.json.decode(msgspec.json.encode(arguments))
    assert canonical(read_back(written(arguments, ["a remark", "and # another"]))) == canonical(
        arguments
    )


@pytest.mark.parametrize("start", range(0, len(HOSTILE_WORDS), 50))
def test_an_editor_shows_what_cannot_be_seen(start: int) -> None:
    words = [word.encode("utf-8", "replace").decode() for word in HOSTILE_WORDS[start : start + 50]]
    text = written({"argv": words}, [])
    assert all(char == "\n" or char.isprintable() for char in text)
    assert read_back(text) == {"argv": words}


@pytest.mark.parametrize("text", ["", "\n \n", "# only\n  # remarks\n"])
def test_an_emptied_file_says_nothing(text: str) -> None:
    assert read_back(text) is None


@pytest.mark.parametrize(
    "text", ["[]", '"x"', "{", '{"a": 1, "a": 2}', '{"a": NaN}', "x", "{}}", "[" * 100_000]
)
def test_what_is_not_a_mapping_in_json_is_refused(text: str) -> None:
    with pytest.raises(Misuse):
        read_back(text)


# --- one at a time --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("argv.2=staging", {"argv": ["a", "b", "staging"]}),
        ("argv.2=", {"argv": ["a", "b", ""]}),
        ("argv.0=x=y", {"argv": ["x=y", "b", "prod"]}),
        ("argv.1=7", {"argv": ["a", "7", "prod"]}),
        ('argv=["x"]', {"argv": ["x"]}),
        ("rows=4", {"rows": 4}),
        ("rows=4.5", {"rows": 4.5}),
        ("force=true", {"force": True}),
        ("deep.list.0.name=z", {"deep": {"list": [{"name": "z"}]}}),
        (r"dotted\.key=v", {"dotted.key": "v"}),
        ("nothing=[1]", {"nothing": [1]}),
    ],
)
def test_one_argument_is_set(assignment: str, expected: dict[str, Any]) -> None:
    """A text stays a text, as it stands; anything else is JSON of the same kind."""
    assert {**ARGUMENTS, **expected} == with_argument(ARGUMENTS, assignment)


ARGUMENTS: dict[str, Any] = {
    "argv": ["a", "b", "prod"],
    "rows": 3,
    "force": False,
    "deep": {"list": [{"name": "x"}]},
    "dotted.key": "w",
    "nothing": None,
}


@pytest.mark.parametrize(
    "assignment",
    [
        "argv",
        "=x",
        "argv.3=x",
        "argv.-1=x",
        "argv.x=1",
        "none=1",
        "rows=four",
        'rows="4"',
        "rows=true",
        "force=1",
        "argv=x",
        "argv={}",
        "",
        "deep.list.0=x",
        "deep..list=1",
        "argv.²=x",
    ],
)
def test_what_cannot_be_set_is_refused(assignment: str) -> None:
    with pytest.raises(Misuse):
        with_argument(ARGUMENTS, assignment)


# --- what comes of it -----------------------------------------------------------------------------


def test_an_edited_command_changes_its_words_and_nothing_that_adjourn_added() -> None:
    arguments = {**editable(CALL, SPEC), "argv": ["./deploy.sh", "--env", "test"]}
    body, spec = edited(
        CALL, SPEC, arguments, schema=None, files={"/srv/place/deploy.sh": "sha256:00"}
    )
    assert command_of(body) == Command(
        argv=("./deploy.sh", "--env", "test", "--approval-decision=approved"),
        cwd=SPEC.workspace,
        env={"AUTO_APPROVAL": "approved"},
        files={"/srv/place/deploy.sh": "sha256:00"},
    )
    assert spec == a_spec(argv=("./deploy.sh", "--env", "test"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"argv": [], "cwd": "/"}, "argv"),
        ({"argv": [""], "cwd": "/"}, "argv"),
        ({"argv": ["a", 1], "cwd": "/"}, "argv"),
        ({"argv": "a", "cwd": "/"}, "argv"),
        ({"argv": ["a\0b"], "cwd": "/"}, "argv.0"),
        ({"argv": ["a"], "cwd": "here"}, "cwd"),
        ({"argv": ["a"], "cwd": ""}, "cwd"),
        ({"argv": ["a"], "cwd": "/\0"}, "cwd"),
        ({"argv": ["a"]}, "cwd"),
        ({"cwd": "/"}, "argv"),
        ({"argv": ["a"], "cwd": "/", "env": {"AUTO_APPROVAL": "x"}}, "env"),
        ({"argv": ["a"], "cwd": "/", "files": {}}, "files"),
        ({"argv": [{"bytes": "!"}], "cwd": "/"}, ""),
    ],
)
def test_a_command_that_no_process_could_be_is_refused(
    arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(Misuse) as refused:
        edited(CALL, SPEC, arguments, schema=None)
    assert named in refused.value.sentence


def test_a_word_that_is_not_utf8_survives_an_edit_of_another() -> None:
    spec = a_spec(argv=("./tool", "\udcff\udcfe", "prod"))
    call = a_call(body=command_body(Command(argv=spec.argv, cwd=spec.workspace)))
    arguments = with_argument(read_back(written(editable(call, spec), [])) or {}, "argv.2=test")
    assert command_of(edited(call, spec, arguments, schema=None)[0]).argv == (
        "./tool",
        "\udcff\udcfe",
        "test",
    )


def test_arguments_that_break_the_tools_schema_are_refused() -> None:
    call = a_call(tool="drop", body=tool_body("drop", {"rows": 3}))
    schema = {"properties": {"rows": {"type": "integer", "maximum": 5}}}
    assert edited(call, SPEC, {"rows": 5}, schema=schema) == (tool_body("drop", {"rows": 5}), SPEC)
    with pytest.raises(Misuse, match="'rows' must be at most 5"):
        edited(call, SPEC, {"rows": 6}, schema=schema)


def test_a_difference_shows_both_versions() -> None:
    other = command_body(
        msgspec.structs.replace(
            SHOWN, argv=("./deploy.sh", "--env", "te\x1bst"), files={"/a": "sha256:1"}
        )
    )
    assert difference("command", CALL.body, other) == [
        '- "prod"',
        '- "--approval-decision=approved"',
        '+ "te\\u{1b}st"',
        "  file /a is new: sha256:1",
    ]
    old, new = (
        tool_body("drop", {"rows": 3, "table": "t"}),
        tool_body("drop", {"rows": 4, "table": "t"}),
    )
    assert difference("drop", old, new) == ["-   rows: 3", "+   rows: 4"]

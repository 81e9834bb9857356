"""Canonical bytes and their digest: equal calls, equal bytes, and the other way round."""

import json
import os
from hashlib import sha256

from hypothesis import assume, given
from hypothesis import strategies as st

from adjourn.core.call import (
    AUTO_APPROVAL,
    Command,
    arguments_of,
    canonical,
    command_body,
    command_of,
    digest_of,
    slot_of,
)
from adjourn.testing.values import a_call
from tests.hostile import HOSTILE

words = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary().map(os.fsdecode),
    st.sampled_from(["", "\0", '{"bytes":"/w=="}']),
)
commands = st.builds(
    Command,
    argv=st.lists(words, max_size=5).map(tuple),
    cwd=words,
    env=st.dictionaries(st.sampled_from([AUTO_APPROVAL, "B", "a", "é"]), words, max_size=3),
)


@given(commands)
def test_a_command_comes_back_exactly(command: Command) -> None:
    """What was approved is what runs, words that are not UTF-8 included."""
    assert command_of(command_body(command)) == command


@given(commands, commands)
def test_different_commands_have_different_bytes(one: Command, other: Command) -> None:
    assert (command_body(one) == command_body(other)) == (one == other)


@given(commands)
def test_the_bytes_do_not_depend_on_the_order_in_which_things_were_said(command: Command) -> None:
    shuffled = Command(env=dict(reversed(command.env.items())), cwd=command.cwd, argv=command.argv)
    assert command_body(shuffled) == command_body(command)


@given(commands)
def test_the_bytes_are_json_that_anyone_can_read(command: Command) -> None:
    """A-R26: the arguments of a call are an object."""
    body = command_body(command)
    read = json.loads(body)
    assert read == {"tool": "command", "arguments": arguments_of(body)}
    assert json.dumps(read) == json.dumps(read, sort_keys=True), (
        "its keys are sorted, whoever reads it"
    )


def test_a_word_that_is_not_utf_8_is_told_apart_from_the_text_that_describes_it() -> None:
    raw = Command(argv=(os.fsdecode(b"\xff"),), cwd="/")
    spelled = Command(argv=('{"bytes":"/w=="}',), cwd="/")
    assert arguments_of(command_body(raw))["argv"] == [{"bytes": "/w=="}]
    assert command_body(raw) != command_body(spelled)


def test_hostile_words_come_back_exactly() -> None:
    for text in HOSTILE:
        raw = os.fsdecode(text.encode("utf-8", "surrogatepass"))
        command = Command(argv=(raw, raw), cwd=raw, env={AUTO_APPROVAL: raw})
        assert command_of(command_body(command)) == command


@given(commands)
def test_the_digest_is_that_of_the_bytes(command: Command) -> None:
    body = command_body(command)
    assert digest_of(body) == sha256(body).hexdigest()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**63), 2**63 - 1)
    )
)
def test_equal_values_have_equal_canonical_bytes(value: dict[str, int]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


Slot = tuple[str, str, int]
slots = st.tuples(st.text("ab:", max_size=3), st.text("ab:", max_size=3), st.integers(1, 12))


@given(slots, slots)
def test_two_slots_are_one_only_if_session_key_and_occurrence_are(one: Slot, other: Slot) -> None:
    assume(one != other)
    assert slot_of(*one) != slot_of(*other)
    assert slot_of(*one) == slot_of(*one)


def test_a_call_has_a_name_in_its_task_and_one_in_the_store() -> None:
    """A-R26, A-R36: `tc_N` is what a person types.

    With the task in front it is the idempotency key.
    """
    call = a_call("abc", 7)
    assert (call.tool_call_id, call.id) == ("tc_7", "abc.tc_7")

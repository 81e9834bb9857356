"""What the file of a Codex thread says.

What is open in it, whether it can be resumed, and how it is put back.
"""

from pathlib import Path

import msgspec
import pytest

from adjourn.core.agent.calls import Held
from adjourn.core.call import Call
from adjourn.core.states import CallState
from adjourn.runners.codex.memory import memory_of
from adjourn.runners.codex.session import Rollout, put_back
from adjourn.runners.codex.usage import CodexUsage

CALL = {
    "type": "function_call",
    "name": "exec_command",
    "call_id": "call_A",
    "arguments": '{"cmd": "ls"}',
}
CELL = {"type": "custom_tool_call", "name": "exec", "call_id": "call_S", "input": "text(1)"}
PROMPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]}
USED = {"usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}


def line(payload: object, kind: str = "response_item") -> bytes:
    return (
        msgspec.json.encode({"timestamp": "2026-01-01", "type": kind, "payload": payload}) + b"\n"
    )


def rollout(tmp_path: Path, *lines: bytes) -> Rollout:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(lines))
    return Rollout(str(path), prompt="do it").read_on()


def test_a_thread_without_the_prompt_cannot_be_resumed(tmp_path: Path) -> None:  # D-R37
    assert not Rollout(str(tmp_path / "none"), prompt="do it").read_on().has_prompt
    assert not rollout(tmp_path, line(CALL)).has_prompt
    assert rollout(tmp_path, line(PROMPT)).has_prompt


def test_a_call_is_open_until_it_has_an_output(tmp_path: Path) -> None:
    closed = {"type": "function_call_output", "call_id": "call_A", "output": "x"}
    assert [call.id for call in rollout(tmp_path, line(PROMPT), line(CALL)).open_calls] == [
        "call_A"
    ]
    assert rollout(tmp_path, line(PROMPT), line(CALL), line(closed)).open_calls == []


ABORTED = (
    "aborted",
    "aborted by user",
    "Wall time: 0.6 seconds\naborted by user",
    "aborted by user after 1.0s",
)
ENDED = (
    "Process exited with code 0\nOutput:\nmerge aborted\n",
    "aborted by user after 3s, it printed",
    "not aborted",
    None,
)
IN_PARTS = [{"type": "input_text", "text": "aborted by user after 3s"}]


@pytest.mark.parametrize("output", [*ABORTED, IN_PARTS, *ENDED])
def test_a_call_that_codex_closed_when_it_was_stopped_is_known(
    tmp_path: Path, output: object
) -> None:
    """A call that ended by itself is not taken for one, whatever it printed."""
    closed = {"type": "function_call_output", "call_id": "call_A", "output": output}
    expected = set() if output in ENDED else {"call_A"}
    assert rollout(tmp_path, line(PROMPT), line(CALL), line(closed)).aborted == expected


def test_an_answer_is_whole_when_its_tokens_were_counted(tmp_path: Path) -> None:
    assert not rollout(tmp_path, line(CALL)).answer_is_whole
    counted = rollout(tmp_path, line(CALL), line(USED, "token_usage_record"))
    assert counted.answer_is_whole
    assert counted.usage == CodexUsage(input_tokens=5, output_tokens=2)


def test_what_belongs_to_no_open_call_belongs_to_the_script(tmp_path: Path) -> None:
    both = rollout(tmp_path, line(CALL), line(CELL))
    assert both.call_of("call_A") == "call_A"
    assert both.call_of("exec-1") == "call_S"


def test_a_line_that_is_cut_off_or_broken_is_passed_over(tmp_path: Path) -> None:
    found = rollout(tmp_path, line(PROMPT), b"{broken\n", line(CALL), line(CELL)[:20])
    assert found.has_prompt
    assert [call.id for call in found.open_calls] == ["call_A"]
    with Path(found.path).open("ab") as file:
        file.write(line(CELL)[20:])
    assert [call.id for call in found.read_on().open_calls] == ["call_A", "call_S"]


def test_a_copy_takes_the_place_of_what_is_gone_or_damaged_and_of_nothing_else(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "a" / "b" / "rollout.jsonl", line(PROMPT) + line(CALL)
    put_back(str(path), copy, prompt="do it")
    assert path.read_bytes() == copy
    for damaged in (copy[:10], b"", b"another\n", b"x" * len(copy), copy[:-9] + b"~~~"):
        path.write_bytes(damaged)
        put_back(str(path), copy, prompt="do it")
        assert path.read_bytes() == copy
        assert path.with_name("rollout.jsonl.damaged").read_bytes() == damaged
    for newer in (copy + line(CELL), line(PROMPT) + line(CELL) + line(CALL)):
        path.write_bytes(newer)
        put_back(str(path), copy, prompt="do it")
        assert path.read_bytes() == newer


def test_what_was_remembered_of_another_session_is_forgotten() -> None:  # D-R31
    kept = msgspec.json.encode({"session": "one", "thread": "t", "place": "p"})
    assert memory_of(kept, session="one") is not None
    assert memory_of(kept, session="two") is None


def test_tokens_are_counted_from_where_the_run_began() -> None:
    assert CodexUsage(input_tokens=300).since(CodexUsage(input_tokens=200)).input_tokens == 100
    assert CodexUsage(input_tokens=50).since(CodexUsage(input_tokens=200)).input_tokens == 50


def test_an_approved_call_is_to_be_repeated() -> None:
    from adjourn.core.call import tool_body
    from adjourn.runners.codex import words

    body = tool_body("shell", {"command": "ls", "cwd": "/", "sandbox": "none"})
    call = Call(
        task_id="t",
        number=1,
        tool="shell",
        body=body,
        digest="",
        nonce="",
        state=CallState.APPROVED,
        approved_by="uid:0",
    )
    assert words.line_of(call) == "`ls`"
    assert "Repeat the identical call" in words.call_told(Held(call=call))

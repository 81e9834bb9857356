"""A JSON document that decides names each key once.

Else two readers could read two decisions in it.
"""

import contextlib
import json
import selectors
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adjourn.core.text.json_text import decode_unambiguous
from adjourn.runners.channel import Message
from adjourn.runners.codex import protocol as codex
from adjourn.runners.hook import SOCKET, HookListener
from tests.e2e.shell import Shell
from tests.e2e.signer import Signers, waiting
from tests.e2e.test_incoming import Sender

BODIES = {
    "two verbs": '{{"ask": "{id}", "verb": "reject", "digest": "{digest}", "verb": "approve"}}',
    "two asks": '{{"ask": "{other}", "verb": "approve", "digest": "{digest}", "ask": "{id}"}}',
    "two digests": '{{"ask": "{id}", "verb": "approve", "digest": "0000", "digest": "{digest}"}}',
    "an escaped key": '{{"ask": "{id}", "verb": "reject", "digest": "{digest}", "\\u0076erb": "approve"}}',
    "the same twice": '{{"ask": "{id}", "verb": "approve", "verb": "approve", "digest": "{digest}"}}',
}


@pytest.mark.parametrize("what", BODIES)
def test_a_webhook_with_a_key_twice_decides_nothing(shell: Shell, what: str) -> None:
    sender = Sender(shell)
    ask = shell.paused(shell.agent("approved.sh"))["asks"][0]
    body = BODIES[what].format(id=ask["id"], digest=ask["digest"], other="a" * 26)
    error = sender.send(body.encode(), expect=2).doc["error"]
    assert "twice" in error["message"]
    assert shell.inbox() == [ask]
    # Its id was not used up
    sender.send({"ask": ask["id"], "verb": "approve", "digest": ask["digest"]})


def test_a_decision_file_with_a_key_twice_decides_nothing(shell: Shell) -> None:
    signers = Signers(shell)
    signers.allow("anna")
    _, ask = waiting(shell)
    path = shell.place / "decision.json"
    shell.adjourn("approve", ask, "--sign", signers.key("anna"), "--save", str(path))
    whole = json.loads(path.read_bytes())["decisions"]
    shown = json.dumps([{"document": "{}", "signature": "none"}])
    path.write_text(
        f'{{"schema_version": 1, "decisions": {shown}, "decisions": {json.dumps(whole)}}}'
    )
    done = shell.adjourn("decide", str(path), expect=5)
    assert "twice" in done.err
    document = whole[0]["document"]
    twice = f'{{"document": "{{}}", "document": {json.dumps(document)}, "signature": {json.dumps(whole[0]["signature"])}}}'
    path.write_text(f'{{"schema_version": 1, "decisions": [{twice}]}}')
    shell.adjourn("decide", str(path), expect=5)
    assert [each["id"] for each in shell.inbox()] == [ask]


def test_a_hook_message_with_a_key_twice_gets_no_yes(tmp_path: Path) -> None:
    said = (
        b'{"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_use_id": "t",'
        b' "tool_input": {"command": "rm -rf /", "command": "ls"}}'
    )
    with (
        selectors.DefaultSelector() as selector,
        contextlib.closing(HookListener(str(tmp_path), selector)) as ear,
        contextlib.closing(socket.socket(socket.AF_UNIX)) as line,
    ):
        line.connect(str(tmp_path / SOCKET))
        line.sendall(said)
        line.shutdown(socket.SHUT_WR)
        for _ in range(3):
            for key, _ in selector.select(0.2):
                key.data()
        assert ear.take() == []
        assert line.recv(1) == b""  # dropped without an answer, which is a no


def test_a_request_of_codex_with_a_key_twice_is_not_put_before_anybody() -> None:
    params = b'{"threadId": "t", "itemId": "i", "command": "rm -rf /", "command": "ls", "cwd": "/"}'
    message = Message(id=1, method=codex.COMMAND, params=msgspec.Raw(params))
    read = codex.read_request(message, thread="t", items={})
    assert isinstance(read, codex.Strange)
    assert "twice" in read.why


def test_a_response_file_with_a_key_twice_answers_nothing(shell: Shell) -> None:
    manifest = shell.paused(shell.agent("deploy.sh"))
    task, ask = manifest["task_id"], manifest["asks"][0]
    answers = json.dumps([{"question_id": ask["key"], "answer": "eu"}])
    response = shell.store / "clarifications" / f"{task}.response.yaml"
    response.parent.mkdir(mode=0o700, exist_ok=True)
    response.write_text(
        f'{{"agent_id": "{task}", "responses": [], "responses": {answers}, "resume_signal": true}}'
    )
    shell.adjourn("resume", task, expect=None)
    assert [each["id"] for each in shell.inbox()] == [ask["id"]]


DOCUMENTS: dict[str, Any] = {
    '{"a": 1}': {"a": 1},
    '{"a": {"b": 1}, "c": {"b": 2}}': {"a": {"b": 1}, "c": {"b": 2}},
    '[{"a": 1}, {"a": 2}]': [{"a": 1}, {"a": 2}],
    '{"a": [1e400, 1.5, null, true]}': None,
}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_what_names_each_key_once_is_read_as_ever(text: str) -> None:
    try:
        expected = msgspec.json.decode(text)
    except msgspec.DecodeError:
        with pytest.raises(msgspec.DecodeError):
            decode_unambiguous(text, type=object)
    else:
        assert decode_unambiguous(text, type=object) == expected


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '[[{"b": {"a": 1, "\\u0061": 2}}]]', '{"": 1, "": 2}']
)
def test_a_key_twice_is_found_at_any_depth(text: str) -> None:
    with pytest.raises(msgspec.DecodeError, match="twice"):
        decode_unambiguous(text.encode(), type=object)


def test_an_always_allow_rule_with_a_key_twice_lets_nothing_run(shell: Shell) -> None:
    rules = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "rules.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(
        '[[allow]]\nid = "r1"\ntool = "deploy"\n'
        """arguments = '{"to": "staging", "to": "production"}'\n"""
        f'programs = {{}}\nworkspace = "{shell.place}"\n'
        'until = "2100-01-01T00:00:00Z"\nby = "uid:0"\nat = "2024-01-01T00:00:00Z"\n'
    )
    done = shell.adjourn("run", "--pause-on-approval", "--", "touch", "ran", expect=None)
    assert done.code not in {0, 10}
    assert "twice" in done.err
    assert not (shell.place / "ran").exists()

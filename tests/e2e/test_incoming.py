"""Decisions by webhook: signed, of now, once, and never more than the config lets them."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from adjourn.core.authority.webhook import signature
from tests.e2e.shell import Document, Done, Shell

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 -- the example of the specification
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
CI = f'[[webhook]]\nname = "ci"\nscopes = ["approve", "answer"]\nsecret = "{SECRET}"\n'


class Sender:
    """Sends requests as a CI system would."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(CI)

    def send(
        self,
        body: Any,
        *,
        expect: int = 0,
        name: str = "msg_1",
        at: int | None = None,
        key: bytes = KEY,
        hook: str = "ci",
    ) -> Done:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        moment = int(time.time()) if at is None else at
        signed = signature(key, name, content, at=moment)
        lines = [
            "POST / HTTP/1.1",
            f"webhook-id: {name}",
            f"webhook-timestamp: {moment}",
            f"webhook-signature: {signed}",
            "",
            "",
        ]
        words = ["adjourn", "decide", "--webhook", hook, "--output", "json"]
        return self._shell.run(*words, stdin="\r\n".join(lines).encode() + content, expect=expect)


@pytest.fixture
def sender(shell: Shell) -> Sender:
    return Sender(shell)


def waiting(shell: Shell) -> tuple[str, Document]:
    manifest = shell.paused(shell.agent("approved.sh"))
    return manifest["task_id"], manifest["asks"][0]


def approval(ask: Document, **words: Any) -> Document:
    return {"ask": ask["id"], "verb": "approve", "digest": ask["digest"], **words}


def test_a_webhook_approves_what_was_shown_to_it(shell: Shell, sender: Sender) -> None:
    """A-R6, A-R85."""
    task, ask = waiting(shell)
    (receipt,) = sender.send(approval(ask, value="from-ci")).doc["receipts"]
    assert (receipt["by"], receipt["level"]) == ("webhook:ci", "L0")
    shell.adjourn("resume", task)
    assert shell.lines("effects") == ["done with from-ci"]


def test_the_same_request_again_gives_the_same_receipt_and_no_second_start(
    shell: Shell, sender: Sender
) -> None:
    task, ask = waiting(shell)
    first = sender.send(approval(ask)).doc["receipts"]
    assert sender.send(approval(ask)).doc["receipts"] == first
    shell.adjourn("resume", task)
    assert sender.send(approval(ask)).doc["receipts"] == first
    assert shell.state(task) == "succeeded"
    assert shell.lines("effects") == ["done with approved"]


def test_an_id_serves_one_decision(shell: Shell, sender: Sender) -> None:
    _, one = waiting(shell)
    _, other = waiting(shell)
    sender.send(approval(one))
    sender.send(approval(other), expect=4)
    sender.send({"ask": one["id"], "verb": "reject"}, expect=4)
    assert [ask["id"] for ask in shell.inbox()] == [other["id"]]


def test_a_webhook_answers_and_rejects(shell: Shell, sender: Sender) -> None:
    ask = shell.paused(shell.agent("deploy.sh"))["asks"][0]
    sender.send({"ask": ask["id"], "verb": "answer", "text": "eu"})
    _, other = waiting(shell)
    sender.send({"ask": other["id"], "verb": "reject", "reason": "no"}, name="msg_2")
    assert shell.inbox() == []


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "another secret": ({"key": bytes(24)}, 5),
    "an old one": ({"at": int(time.time()) - 100_000}, 5),
    "an early one": ({"at": int(time.time()) + 100_000}, 5),
    "an unknown webhook": ({"hook": "nobody"}, 3),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_not_genuine_changes_nothing(shell: Shell, sender: Sender, how: str) -> None:
    _, ask = waiting(shell)
    changes, code = REFUSED[how]
    sender.send(approval(ask), expect=code, **changes)
    assert shell.inbox() == [ask]


BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "another digest": ({"digest": "0" * 64}, 4),
    "no digest": ({"digest": None}, 2),
    "an unknown ask": ({"ask": "a" * 26}, 3),
    "the beginning of an ask": ({"ask": "short"}, 3),
    "a claim of who": ({"by": "uid:0"}, 2),
    "an unknown verb": ({"verb": "settle"}, 2),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_request_that_does_not_fit_changes_nothing_and_its_id_is_not_used(
    shell: Shell, sender: Sender, what: str
) -> None:
    _, ask = waiting(shell)
    changes, code = BODIES[what]
    sender.send({**approval(ask), **changes}, expect=code)
    assert shell.inbox() == [ask]
    sender.send(approval(ask))


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ('[[webhook]]\nname = "ci"\n', 2),
        (CI.replace('scopes = ["approve", "answer"]\n', ""), 5),
        (CI.replace('["approve", "answer"]', '["answer"]'), 5),
        (CI.replace('["approve", "answer"]', '["admin", "request"]'), 5),
        (CI.replace('["approve", "answer"]', '["everything"]'), 2),
        (CI.replace("secret =", 'colour = "red"\nsecret ='), 2),
        (CI.replace("whsec_", ""), 2),
        (CI.replace("[[webhook]]", "[webhook]"), 2),
        (CI.replace("[[webhook]]", "[[webhok]]"), 2),
        ("", 3),
    ],
)
def test_a_webhook_may_do_what_the_config_says_and_no_more(
    shell: Shell, sender: Sender, config: str, code: int
) -> None:
    _, ask = waiting(shell)
    sender.config.write_text(config)
    done = sender.send(approval(ask), expect=code)
    assert done.doc["error"]["way_out"]
    assert SECRET.removeprefix("whsec_") not in done.out + done.err
    sender.config.write_text(CI)  # where it is wrong, no copy is made of anything
    assert shell.inbox() == [ask]


def test_the_secret_may_be_in_a_file_or_a_variable(shell: Shell, sender: Sender) -> None:
    (sender.config.parent / "ci.secret").write_text(f"{SECRET}\n")
    sender.config.write_text(CI.replace(f'secret = "{SECRET}"', 'secret_file = "ci.secret"'))
    sender.send(approval(waiting(shell)[1]))
    shell.environment["CI_SECRET_OF_OURS"] = SECRET
    sender.config.write_text(CI.replace(f'secret = "{SECRET}"', 'secret_env = "CI_SECRET_OF_OURS"'))
    sender.send(approval(waiting(shell)[1]), name="msg_2")


def test_a_config_that_others_can_write_lets_nobody_decide(shell: Shell, sender: Sender) -> None:
    _, ask = waiting(shell)
    sender.config.chmod(0o666)
    assert "written by others" in sender.send(approval(ask), expect=2).doc["error"]["message"]
    sender.config.chmod(0o600)
    assert shell.inbox() == [ask]

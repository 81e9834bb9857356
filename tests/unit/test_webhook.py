"""Requests that decide: as Standard Webhooks has them, within five minutes, and nothing else."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from adjourn.core.ask import Reply, Verb
from adjourn.core.authority.webhook import (
    LARGEST,
    WINDOW,
    WebhookRequest,
    read_request,
    reply_of,
    require_genuine,
    signature,
)
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.testing.values import NOON
from tests.needs import missing

try:
    from standardwebhooks import Webhook
except ImportError:
    missing("the package standardwebhooks")

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 -- the example of the specification
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
SECONDS = NOON // 1000
BODY = b'{"ask": "a1", "verb": "approve", "digest": "ab"}'


def a_request(
    body: bytes = BODY,
    *,
    at: int = SECONDS,
    signed: str | None = None,
    end: bytes = b"\n",
    head: bytes = b"",
) -> bytes:
    """Return a request as the reference implementation signs it."""
    text = signed or Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(at, UTC), body.decode())
    lines = [
        b"webhook-id: msg_1",
        b"webhook-timestamp: %d" % at,
        b"webhook-signature: " + text.encode(),
    ]
    return head + end.join([*lines, b"", body])


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "head", [b"", b"POST /decide HTTP/1.1\r\nHost: x\r\n", b"Content-Type: application/json\n"]
)
def test_what_the_reference_implementation_signs_is_genuine(head: bytes, end: bytes) -> None:
    request = read_request(a_request(head=head, end=end))
    require_genuine(request, KEY, now=SECONDS)
    assert reply_of(request) == Reply(ask_id="a1", verb=Verb.APPROVE, digest="ab")


def test_header_names_are_read_in_any_case() -> None:
    assert read_request(a_request().replace(b"webhook-id", b"Webhook-ID")).id == "msg_1"


def test_one_of_several_signatures_will_do() -> None:
    mine = signature(KEY, "msg_1", BODY, at=SECONDS)
    request = read_request(a_request(signed=f"v1,AAAA v2,xyz {mine}"))
    require_genuine(request, KEY, now=SECONDS)


@pytest.mark.parametrize("off", [-WINDOW - 1, WINDOW + 1, 86_400, -86_400])
def test_a_request_that_is_not_of_now_is_refused(off: int) -> None:
    with pytest.raises(NotAllowed, match="seconds off"):
        require_genuine(read_request(a_request(at=SECONDS + off)), KEY, now=SECONDS)


@pytest.mark.parametrize("off", [-WINDOW, 0, WINDOW])
def test_a_request_within_the_window_is_taken(off: int) -> None:
    require_genuine(read_request(a_request(at=SECONDS + off)), KEY, now=SECONDS)


CHANGES: dict[str, dict[str, Any]] = {
    "id": {"id": "msg_2"},
    "time": {"at": SECONDS + 1},
    "body": {"body": BODY.replace(b"a1", b"a2")},
    "no signature": {"signatures": ()},
    "version": {"signatures": (signature(KEY, "msg_1", BODY, at=SECONDS).replace("v1,", "v0,"),)},
    "key": {"signatures": (signature(bytes(24), "msg_1", BODY, at=SECONDS),)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_changed_breaks_the_signature(change: str) -> None:
    request = msgspec.structs.replace(read_request(a_request()), **CHANGES[change])
    with pytest.raises(NotAllowed, match="not signed"):
        require_genuine(request, KEY, now=SECONDS)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\xff" * 1_000,
        BODY,
        a_request().replace(b"webhook-id: msg_1\n", b""),
        a_request(head=b"webhook-id: another\n"),
        a_request().replace(b"\n\n", b"\n"),
        a_request().replace(b"timestamp: ", b"timestamp: -"),
        a_request().replace(b"timestamp: ", b"timestamp: 9999999999999999"),
        a_request().replace(b"msg_1", b"x" * 300),
        b"x" * (LARGEST + 1),
    ],
)
def test_what_is_no_request_is_refused(content: bytes) -> None:
    with pytest.raises(NotAllowed):
        read_request(content)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b'{"ask": "a", "verb": "approve"}', "digest"),
        (b'{"ask": "a", "verb": "settle", "digest": "ab"}', "cannot be used"),
        (b'{"ask": "a", "verb": "approve", "digest": "ab", "by": "uid:0"}', "by"),
        (b'{"ask": "a", "verb": "approve", "digest": "ab", "text": "x"}', "text"),
        (b'{"ask": "a", "verb": "reject", "value": "x"}', "value"),
        (b'{"ask": "a", "verb": "answer"}', "text"),
        (b'{"verb": "reject"}', "ask"),
        (b"[]", "cannot be used"),
        (b"\xff", "cannot be used"),
        (b"[" * 100_000, "cannot be used"),
        (b"", "cannot be used"),
    ],
)
def test_a_body_that_makes_no_sense_is_told(body: bytes, word: str) -> None:
    """The principal is who signed; a field that claims to say so is an unknown key."""
    with pytest.raises(Misuse, match=word):
        reply_of(WebhookRequest(id="m", at=SECONDS, signatures=(), body=body))


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (
            b'{"ask": "a", "verb": "reject", "reason": "no"}',
            Reply(ask_id="a", verb=Verb.REJECT, text="no"),
        ),
        (b'{"ask": "a", "verb": "reject"}', Reply(ask_id="a", verb=Verb.REJECT)),
        (
            b'{"ask": "a", "verb": "answer", "text": "eu"}',
            Reply(ask_id="a", verb=Verb.ANSWER, text="eu"),
        ),
        (
            b'{"ask": "a", "verb": "approve", "digest": "ab", "value": "v"}',
            Reply(ask_id="a", verb=Verb.APPROVE, text="v", digest="ab"),
        ),
    ],
)
def test_every_verb_has_its_word(body: bytes, reply: Reply) -> None:
    assert reply_of(WebhookRequest(id="m", at=SECONDS, signatures=(), body=body)) == reply

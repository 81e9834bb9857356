"""Webhooks as Standard Webhooks has them: the signature, and a request that brings a decision."""

import base64
import hashlib
import hmac
from typing import Literal

import msgspec

from adjourn.core.ask import Reply, Verb
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.core.text.json_text import decode_unambiguous

LARGEST = 1024 * 1024
WINDOW = 300  # seconds that a request may be old, or early
_ID, _TIME, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_LONGEST_ID = 256
_DIGITS = 12


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A signed request: what was signed, and the signatures that it came with."""

    id: str
    at: int
    signatures: tuple[str, ...]
    body: bytes


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request says."""

    ask: str
    verb: Literal["approve", "reject", "answer"]
    digest: str | None = None
    value: str | None = None
    reason: str | None = None
    text: str | None = None


_WORDS = {"approve": "value", "reject": "reason", "answer": "text"}


def signature(key: bytes, notice_id: str, body: bytes, *, at: int) -> str:
    """Sign a document: the HMAC-SHA256 of id, seconds and body."""
    signed = b".".join([notice_id.encode(), str(at).encode(), body])
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def read_request(content: bytes) -> WebhookRequest:
    """Read header lines, an empty line and a body.

    A line before them, as HTTP has it, is tolerated.
    """
    if len(content) > LARGEST:
        raise NotAllowed(
            f"a request has at most {LARGEST:,} bytes", way_out="send one decision at a time"
        )
    head, separator, body = _split(content)
    lines = head.decode("latin-1").splitlines()
    headers = [
        (name.strip().lower(), value.strip())
        for name, colon, value in (line.partition(":") for line in lines)
        if colon
    ]
    found = dict(headers)
    if not separator or any(
        [name for name, _ in headers].count(key) != 1 for key in (_ID, _TIME, _SIGNATURE)
    ):
        raise NotAllowed(
            f"a request needs {_ID}, {_TIME} and {_SIGNATURE}, once each, and an empty line",
            way_out=_HOW,
        )
    if (
        not (found[_TIME].isascii() and found[_TIME].isdigit())
        or len(found[_TIME]) > _DIGITS
        or len(found[_ID]) > _LONGEST_ID
    ):
        raise NotAllowed(
            f"{_TIME} is in seconds, and {_ID} has at most {_LONGEST_ID} characters", way_out=_HOW
        )
    return WebhookRequest(
        id=found[_ID], at=int(found[_TIME]), signatures=tuple(found[_SIGNATURE].split()), body=body
    )


_HOW = "adjourn decide --help"


def _split(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Part head and body at the first empty line, whichever way its lines end."""
    ends = [(at, end) for end in (b"\r\n\r\n", b"\n\n") if (at := content.find(end)) >= 0]
    if not ends:
        return content, b"", b""
    at, end = min(ends)
    return content[:at], end, content[at + len(end) :]


def require_genuine(request: WebhookRequest, key: bytes, *, now: int) -> None:
    """Refuse a request that was not signed with that key, or not within the last few minutes."""
    expected = signature(key, request.id, request.body, at=request.at)
    matches = [
        hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))
        for given in request.signatures
    ]
    if not any(matches):
        raise NotAllowed("the request is not signed with this webhook's secret", way_out=_HOW)
    if abs(now - request.at) > WINDOW:
        raise NotAllowed(
            f"the request is {abs(now - request.at)} seconds off: at most {WINDOW} are allowed",
            way_out=_HOW,
        )


def reply_of(request: WebhookRequest) -> Reply:
    """Return the reply that a genuine request brings."""
    try:
        body = decode_unambiguous(request.body, type=Body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(f"the body of the request cannot be used: {error}", way_out=_HOW) from error
    for word in sorted({*_WORDS.values()} - {_WORDS[body.verb]}):
        if getattr(body, word) is not None:
            raise Misuse(f"`{word}` does not go with {body.verb}", way_out=_HOW)
    if body.verb == "approve" and not body.digest:
        raise Misuse("an approval names the `digest` of the call that was shown", way_out=_HOW)
    if body.verb == "answer" and body.text is None:
        raise Misuse("an answer needs a `text`", way_out=_HOW)
    return Reply(
        ask_id=body.ask,
        verb=Verb(body.verb),
        text=getattr(body, _WORDS[body.verb]),
        digest=body.digest,
    )

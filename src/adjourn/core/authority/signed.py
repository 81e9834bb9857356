"""Decisions that carry their own proof.

The document that is signed, and the file that brings it from anywhere.
"""

from binascii import a2b_base64, b2a_base64
from hashlib import sha256
from typing import Literal

import msgspec

from adjourn.core.ask import Ask, Reply, Verb
from adjourn.core.call import Call, canonical, digest_of
from adjourn.core.errors import Conflict, NotAllowed
from adjourn.core.people import FINGERPRINT
from adjourn.core.task import Milliseconds
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.core.text.when import stamp
from adjourn.core.trail.reason import is_carried_on

NAMESPACE = "adjourn"
_KEY = 14  # where the key begins in a signature: behind a magic, a version and its length
LARGEST = 1024 * 1024
LIFETIME: Milliseconds = 86_400_000  # a day, unless its signer says otherwise


class Decision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person signs: this reply to this ask, for these bytes, once, and not for ever."""

    adjourn: Literal[1] = 1
    task: str
    reply: Reply
    nonce: str | None  # of the call: another call with the same bytes has another one
    runs: str | None  # the digest of what starts if this is an approval
    at: Milliseconds
    expires_at: Milliseconds


class Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision as it was signed, byte for byte, with the signature."""

    document: str
    signature: str


class DecisionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signed decisions on their way."""

    schema_version: Literal[1] = 1
    decisions: tuple[Signed, ...]


def document_of(decision: Decision) -> str:
    """Return the text that is signed: equal decisions, equal texts."""
    return canonical(decision).decode()


def decision_of(signed: Signed) -> Decision:
    """Read what somebody signed; refuse what is not a decision, even if it is signed."""
    try:
        decision = msgspec.json.decode(signed.document, type=Decision)
    except msgspec.MsgspecError as error:
        raise NotAllowed(
            f"what was signed is no decision: {error}", way_out="adjourn approve ASK --sign KEY"
        ) from error
    if decision.reply.verb is Verb.SETTLE or document_of(decision) != signed.document:
        raise NotAllowed(
            "what was signed is not a decision that can be delivered",
            way_out="adjourn decide --help",
        )
    return decision


def kind_of_proof(signature: str) -> Literal["key", "passkey"]:
    """Return what kind of principal a signature proves, by its form.

    ssh-keygen's is a block of text, a passkey's an object of JSON.
    """
    return "passkey" if signature.startswith("{") else "key"


def key_of_signature(signature: str) -> str | None:
    """Return the fingerprint of the key that a signature says it is of, as `key:SHA256:...`.

    It is true only of a signature that was verified.
    """
    lines = [line.strip() for line in signature.strip().splitlines()[1:-1]]
    try:
        blob = a2b_base64("".join(lines).encode())
        size = int.from_bytes(blob[_KEY - 4 : _KEY])
        key = blob[_KEY : _KEY + size]
    except (ValueError, UnicodeEncodeError):
        return None
    if not blob.startswith(b"SSHSIG") or not size or len(key) != size:
        return None
    return FINGERPRINT + b2a_base64(sha256(key).digest()).decode().rstrip("=\n")


def read_file(content: bytes) -> tuple[Signed, ...]:
    """Read a file of signed decisions."""
    if len(content) > LARGEST:
        raise NotAllowed(
            f"a decision file has at most {LARGEST:,} bytes",
            way_out="decide fewer asks with one file",
        )
    try:
        found = decode_unambiguous(content, type=DecisionFile).decisions
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAllowed(
            f"that is no decision file: {error}",
            way_out="adjourn approve ASK --sign KEY --save FILE",
        ) from error
    if not found:
        raise NotAllowed(
            "that decision file decides nothing",
            way_out="adjourn approve ASK --sign KEY --save FILE",
        )
    return found


def require_fresh(decision: Decision, *, now: Milliseconds) -> None:
    """Refuse a decision whose time is over."""
    if now >= decision.expires_at:
        raise NotAllowed(
            f"that decision expired at {stamp(decision.expires_at)}", way_out="sign it again"
        )


def require_same_call(decision: Decision, ask: Ask, call: Call | None) -> None:
    """Refuse a decision that was made for something else than what is asked now."""
    shown = (call.nonce, call.digest) if call else (None, None)
    if decision.task != ask.task_id or (decision.nonce, decision.reply.digest) != shown:
        raise Conflict(
            "that decision is for another call than the one that is asked about",
            way_out=f"adjourn show {ask.task_id}",
        )


def require_cover(decision: Decision, ask: Ask, call: Call, *, asked_about: Call) -> None:
    """Refuse a call that is neither the signed one, byte for byte, nor its continuation."""
    is_same_call = asked_about.number == call.number
    runs = (
        call.digest
        if is_same_call or not is_carried_on(call.body, asked_about.body)
        else digest_of(asked_about.body)
    )
    approved = (decision.reply.ask_id, decision.reply.verb, decision.nonce, decision.runs)
    if approved != (ask.id, Verb.APPROVE, asked_about.nonce, runs):
        raise NotAllowed(
            f"the signature does not cover call {call.id}",
            way_out=f"adjourn restart {call.task_id}",
        )

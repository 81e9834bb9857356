"""Verifies what passkeys signed, with the package `webauthn` (extra `passkeys`).

A passkey signs a challenge. Of a decision the challenge is the digest of its document, so the proof
is of this decision and no other.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from adjourn.core.errors import NotAllowed

_LONGEST = 16 * 1024
_AGAIN = "open the ask again, and approve it with the passkey"


class Assertion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a passkey signed, as a browser hands it over; all of it base64url."""

    id: str
    authenticator_data: str
    client_data: str
    signature: str


class Proof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An assertion as it is kept with a decision, in the place of an SSH signature."""

    passkey: Assertion


def proof_text(assertion: Assertion) -> str:
    """Return an assertion as it is kept with a decision."""
    return msgspec.json.encode(Proof(passkey=assertion)).decode()


def read_proof(text: str) -> Assertion:
    """Read what is kept with a decision, or refuse what is no proof."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return msgspec.json.decode(text, type=Proof).passkey
    except (msgspec.MsgspecError, ValueError):
        raise NotAllowed("that is no proof of a passkey", way_out=_AGAIN) from None


def challenge_of(document: bytes) -> bytes:
    """Return what a passkey signs for a document."""
    return sha256(document).digest()


def verify_assertion(
    assertion: Assertion, *, challenge: bytes, rp_id: str, public_key: str
) -> None:
    """Refuse an assertion that is not by this key, for this challenge, at this site.

    The person was verified by the device: by a finger, a face or a PIN.
    """
    webauthn, failed = _webauthn()
    try:
        webauthn.verify_authentication_response(
            credential={
                "id": assertion.id,
                "rawId": assertion.id,
                "type": "public-key",
                "response": {
                    "authenticatorData": assertion.authenticator_data,
                    "clientDataJSON": assertion.client_data,
                    "signature": assertion.signature,
                },
            },
            expected_challenge=challenge,
            expected_rp_id=rp_id,
            expected_origin=_own_origin(assertion.client_data, rp_id),
            credential_public_key=decoded(public_key),
            credential_current_sign_count=0,  # a decision is verified again, long after it was made
            require_user_verification=True,
        )
    except (failed, ValueError, KeyError, TypeError, IndexError) as error:
        raise NotAllowed(f"the passkey's proof does not hold: {error}", way_out=_AGAIN) from error


def verify_registration(
    *, credential_id: str, attestation: str, client_data: str, challenge: bytes, rp_id: str
) -> str:
    """Return the public key of a passkey that was just made, or refuse it."""
    webauthn, failed = _webauthn()
    try:
        made = webauthn.verify_registration_response(
            credential={
                "id": credential_id,
                "rawId": credential_id,
                "type": "public-key",
                "response": {"attestationObject": attestation, "clientDataJSON": client_data},
            },
            expected_challenge=challenge,
            expected_rp_id=rp_id,
            expected_origin=_own_origin(client_data, rp_id),
            require_user_verification=True,
        )
    except (failed, ValueError, KeyError, TypeError, IndexError) as error:
        raise NotAllowed(f"the passkey was not made: {error}", way_out="try again") from error
    return encoded(made.credential_public_key)


def is_installed() -> bool:
    """Return whether passkeys can be verified here."""
    from importlib.util import find_spec  # only pages of a browser ask

    return find_spec("webauthn") is not None


def encoded(content: bytes) -> str:
    """Return bytes as browsers write them: base64url without its end."""
    return urlsafe_b64encode(content).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """Return the bytes of base64url, or raise ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _own_origin(client_data: str, rp_id: str) -> str:
    """Return the origin that a browser names, if it is one of the site.

    A server may change its port. That the host is the site's is what the passkey is bound to.
    """
    origin = msgspec.json.decode(decoded(client_data), type=_ClientData).origin
    parts = urlsplit(origin)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and rp_id == "localhost")
    if parts.hostname != rp_id or not is_safe:
        raise ValueError("it was made for another site")
    return origin


class _ClientData(msgspec.Struct):
    origin: str


def _webauthn() -> tuple[Any, type[Exception]]:
    try:
        import webauthn  # an extra, and slow to import
        from webauthn.helpers.exceptions import WebAuthnException
    except ImportError:
        raise NotAllowed(
            "passkeys cannot be verified here: the package webauthn is not installed",
            way_out="pip install 'adjourn[passkeys]'",
        ) from None
    return webauthn, WebAuthnException

"""Whose passkey it is: joins the users of the config with what verifies passkeys."""

import os

import msgspec

from adjourn.core.errors import Misuse, NotAllowed
from adjourn.core.text.when import stamp
from adjourn.passkeys import (
    Assertion,
    challenge_of,
    decoded,
    encoded,
    is_installed,
    proof_text,
    read_proof,
    verify_assertion,
    verify_registration,
)
from adjourn.settings.web_users import Passkey, WebUser, change_passkeys, read_users
from adjourn.system.machine import now

__all__ = [
    "Assertion",
    "NewPasskey",
    "add_passkey",
    "challenge_of",
    "decoded",
    "encoded",
    "is_installed",
    "passkey_signer",
    "proof_text",
    "user_of_assertion",
]
_MOST = 20  # passkeys of one user
_LONGEST_NAME = 64


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passkey as the browser that made it hands it over."""

    id: str
    name: str
    attestation: str
    client_data: str


def passkey_signer(document: bytes, signature: str, *, owner: int) -> str:
    """Return the user whose passkey signed these very bytes, and still may, or raise NotAllowed."""
    assertion = read_proof(signature)
    return _verified(assertion, challenge_of(document), owner).name


def user_of_assertion(assertion: Assertion, challenge: bytes) -> WebUser:
    """Return the user whose passkey signed a challenge, or raise NotAllowed."""
    return _verified(assertion, challenge, os.geteuid())


def _verified(assertion: Assertion, challenge: bytes, owner: int) -> WebUser:
    try:
        users = read_users(owner)
    except Misuse as error:
        raise NotAllowed(
            f"whose passkeys count cannot be told: {error.sentence}", way_out=error.way_out
        ) from error
    for user in users:
        for passkey in user.passkeys:
            if passkey.id == assertion.id:
                verify_assertion(
                    assertion,
                    challenge=challenge,
                    rp_id=passkey.rp_id,
                    public_key=passkey.public_key,
                )
                return user
    raise NotAllowed("nobody has that passkey", way_out="adjourn users list")


def add_passkey(user: str, new: NewPasskey, *, challenge: bytes, rp_id: str) -> None:
    """Give a user a passkey that was just made for this challenge."""
    public_key = verify_registration(
        credential_id=new.id,
        attestation=new.attestation,
        client_data=new.client_data,
        challenge=challenge,
        rp_id=rp_id,
    )
    made = Passkey(
        id=new.id,
        public_key=public_key,
        rp_id=rp_id,
        name=new.name.strip()[:_LONGEST_NAME] or "passkey",
        at=stamp(now()),
    )
    if any(made.id == each.id for other in read_users() for each in other.passkeys):
        raise NotAllowed("that passkey is known already", way_out="adjourn users list")

    def change(passkeys: tuple[Passkey, ...]) -> tuple[Passkey, ...]:
        if len(passkeys) >= _MOST:
            raise NotAllowed(f"a user has at most {_MOST} passkeys", way_out="remove one first")
        return (*passkeys, made)

    change_passkeys(user, change)

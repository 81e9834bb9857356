"""Puts together who may decide.

The owner of the store, whom the owner's config names, and whose signatures count.
"""

import os

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import AGENT, ALL, NONE, Rights, Scope
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.ports.store import Change, View


class FileAuthoriser:
    """Knows the owner by the store's directory, and everybody else by the owner's config."""

    def __init__(self, root: str) -> None:
        self._root = root

    def caller(self) -> str:
        """Return the user of this process."""
        return f"uid:{os.getuid()}"

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do."""
        owner = os.stat(self._root).st_uid
        if by.name == f"uid:{owner}":
            return Rights(scopes=ALL, is_only_user=True)
        if by.name == f"file:uid:{owner}":
            return Rights(scopes=frozenset({Scope.ANSWER}))  # files carry answers, never decisions
        # Most commands start without it (bench start)
        from adjourn.settings.config import read_config

        # Most commands start without it (bench start)
        from adjourn.settings.principals import agent_scopes, rights_in

        if by.kind == AGENT:
            # It has no more than the user or login through whose process it speaks
            user = self.rights(Principal(name=by.through)) if by.through else NONE
            return Rights(scopes=user.scopes & agent_scopes(read_config(owner), by))
        return rights_in(read_config(owner), by)

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Refuse a decision from what is, or may be, part of a run of the store."""
        from adjourn.wiring.outside_runs import require_outside  # who only reads does without

        require_outside(self._root, view, by, verb)

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember that the store is used from here."""
        # Most commands start without it (bench start)
        from adjourn.wiring.outside_runs import note_place

        note_place(tx, by)


class FileSignatures:
    """Verifies with the allowed signers that the config of the store's owner names."""

    def __init__(self, root: str) -> None:
        self._root = root

    def signer(self, document: bytes, signature: str) -> str:
        """Return the name of whoever signed these very bytes and still may, or raise NotAllowed."""
        # Only signed decisions need it (bench start)
        from adjourn.signatures import SshSignatures

        try:
            allowed, revoked = self._files()
        except Misuse as error:
            raise NotAllowed(
                f"whose signatures count cannot be told: {error.sentence}", way_out=error.way_out
            ) from error
        return SshSignatures(allowed, revoked=revoked).signer(document, signature)

    def _files(self) -> tuple[str, str | None]:
        """Return the files that say whose signatures count, and whose no more.

        Who could write them could sign.
        """
        # Most commands start without it (bench start)
        from adjourn.settings.config import read_config, require_trust

        owner = os.stat(self._root).st_uid
        config = read_config(owner)
        allowed, revoked = config.file("allowed_signers"), config.file("revoked_signers")
        for path in filter(os.path.exists, (allowed, revoked)):
            require_trust(path, os.stat(path), owner=owner)
        is_needed = "revoked_signers" in config.content or os.path.lexists(revoked)
        return allowed, revoked if is_needed else None


def sign(document: bytes, *, key: str) -> str:
    """Return the signature of a document by a key of the person who is here."""
    # Only signed decisions need it (bench start)
    from adjourn import signatures

    return signatures.sign(document, key=key)


def require_keygen() -> None:
    """Refuse to go on where no signature can be made or verified."""
    # Only signed decisions need it (bench start)
    from adjourn import signatures

    signatures.require_program()

"""Puts together who may decide: the owner of the store, whom the owner's config names, and whose signatures count."""

import os

from adjourn.core.ask import Principal
from adjourn.core.authority import ALL, Rights, Scope


class FileAuthoriser:
    """Knows the owner of a store by the store, and everybody else by the owner's config, which is read for nobody else."""

    def __init__(self, root: str) -> None:
        self._root = root

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do."""
        owner = os.stat(self._root).st_uid
        if by.name == f"uid:{owner}":
            return Rights(scopes=ALL)
        if by.name == f"file:uid:{owner}":
            return Rights(scopes=frozenset({Scope.ANSWER}))  # files carry answers, never decisions
        from adjourn.wiring.config import read_config
        from adjourn.wiring.principals import rights_in

        return rights_in(read_config(owner), by)


class FileSignatures:
    """Verifies with the allowed signers that the config of the store's owner names."""

    def __init__(self, root: str) -> None:
        self._root = root

    def signer(self, document: bytes, signature: str) -> str:
        """Return the name of whoever signed these very bytes and still may, or raise NotAllowed."""
        from adjourn.signatures import SshSignatures
        from adjourn.wiring.config import read_config

        config = read_config(os.stat(self._root).st_uid)
        revoked = config.file("revoked_signers")
        is_named = "revoked_signers" in config.content
        return SshSignatures(
            config.file("allowed_signers"), revoked=revoked if is_named or os.path.lexists(revoked) else None
        ).signer(document, signature)


def sign(document: bytes, *, key: str) -> str:
    """Return the signature of a document by a key of the person who is here."""
    from adjourn import signatures

    return signatures.sign(document, key=key)

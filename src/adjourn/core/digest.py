"""SHA-256, for everything that is known by its digest."""

import hashlib


def sha256(content: bytes) -> bytes:
    """Return the 32 bytes of the digest."""
    return hashlib.sha256(content).digest()

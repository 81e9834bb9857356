"""SHA-256, from the interpreter's own module.

Importing hashlib loads OpenSSL, a twentieth of a short command.
"""

from collections.abc import Callable
from typing import Any


def _found() -> Callable[[bytes], Any]:
    for name in ("_sha256", "_sha2", "hashlib"):  # Python 3.11, 3.12 and later, other interpreters
        try:
            found: Callable[[bytes], Any] = __import__(name).sha256
        except ImportError:
            continue
        return found
    raise ImportError("this interpreter has no SHA-256")


_sha256 = _found()


def sha256(content: bytes) -> bytes:
    """Return the 32 bytes of the digest."""
    digest: bytes = _sha256(content).digest()
    return digest

"""The clock of this machine, and new ids."""

import os
import time

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return 128 random bits as 26 characters that are easy to type and never begin with a dash."""
    bits = int.from_bytes(os.urandom(16), "big") << 2
    return "".join(_LETTERS[bits >> shift & 31] for shift in range(125, -1, -5))

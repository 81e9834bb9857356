"""The clock of this machine, its boot, and new ids."""

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


def boot_id() -> str:
    """Return what tells this boot of this machine from every other."""
    fd = os.open("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 64).decode().strip()
    finally:
        os.close(fd)

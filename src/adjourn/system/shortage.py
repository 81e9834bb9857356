"""Tells what a machine lacks from what is wrong with a command."""

import errno

# A start that fails for one of these may succeed later, with the same bytes and the same approval.
_PROCESSES_AND_MEMORY = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS})
_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS})
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_SHORTAGES = _PROCESSES_AND_MEMORY | _DESCRIPTORS | _DISK


def is_shortage(number: int | None) -> bool:
    """Return whether this error number tells of the machine, and not of what was to be started."""
    return number in _SHORTAGES


def hinders_looking(number: int | None) -> bool:
    """Return whether this error number says nothing about the file that was to be read."""
    return number in _PROCESSES_AND_MEMORY | _DESCRIPTORS

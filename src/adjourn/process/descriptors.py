"""Closes what a fork brought along."""

import itertools
import os


def close_all_but(*kept: int) -> None:
    """Close every descriptor beyond the standard three, save those to keep."""
    edges = [2, *sorted(fd for fd in kept if fd > 2), os.sysconf("SC_OPEN_MAX")]  # noqa: PLR2004 -- that is the number of stderr
    for below, above in itertools.pairwise(edges):
        if below + 1 < above:  # closerange(0, 0) closes everything
            os.closerange(below + 1, above)

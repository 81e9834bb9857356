"""Puts together what judges a command: the policies, and a look at what it depends on."""

import os
import sys
from functools import cache

from adjourn.controller.gate import PolicyGate
from adjourn.core.call import Command
from adjourn.core.surroundings import Surroundings
from adjourn.process.look import look_at, search_path
from adjourn.wiring import now
from adjourn.wiring.policies import FilePolicies


def open_gate(root: str) -> PolicyGate:
    """Make what judges the commands of a store's tasks."""
    return PolicyGate(FilePolicies(root), observe, now)


def observe(command: Command) -> Surroundings:
    """Look at what a command depends on, with the PATH that its process would have."""
    return look_at(command, path=search_path(None, os.environ), own=own_program() or "")


@cache
def own_program() -> str | None:
    """Return where this very adjourn is installed as a command, if it is."""
    # A word without a directory says nothing: a fork of a warm parent has one, and the workspace may hold such a file.
    called = os.path.realpath(sys.argv[0]) if "/" in sys.argv[0] else ""
    for candidate in (called, os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if os.path.basename(candidate) == "adjourn" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None

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
    return PolicyGate(FilePolicies(root), observe, now, resolve=resolve)


def observe(command: Command) -> Surroundings:
    """Look at what a command depends on, with the PATH that its process would have."""
    return look_at(command, path=search_path(scripts_directory(), os.environ))


def resolve(path: str) -> str:
    """Return where a path really leads: links are followed as the kernel does, and what is not there yet is kept."""
    if "\0" in path:  # no such path can be opened
        return path
    try:
        real = os.path.realpath(path)
    except OSError:  # somebody changes links on its way at this very moment; no rule names what comes of it
        real = f"{path} (it changes while it is looked at)"
    return real.encode("utf-8", "backslashreplace").decode()


@cache
def scripts_directory() -> str | None:
    """Return where this very adjourn is installed as a command, if it is."""
    for candidate in (os.path.abspath(sys.argv[0]), os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if os.path.basename(candidate) == "adjourn" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.dirname(candidate)
    return None

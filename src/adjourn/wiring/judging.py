"""Puts together what judges a command: the policies, and a look at what it depends on."""

import os
import sys
from collections.abc import Mapping
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


def observe(command: Command, workspace: str | None = None) -> Surroundings:
    """Look at what a command depends on, with the PATH that its process would have.

    The `workspace` of its task is the directory that it would run in, unless it is given.
    """
    return look_at(command, path=search_path(None, os.environ), own=own_program() or "", workspace=workspace)


def resolve(path: str) -> str:
    """Return where a path really leads: links are followed as the kernel does, and what is not there yet is kept."""
    if "\0" in path:  # no such path can be opened
        return path
    try:
        real = os.path.realpath(path)
    except OSError:  # somebody changes links on its way at this very moment; no rule names what comes of it
        real = f"{path} (it changes while it is looked at)"
    return real.encode("utf-8", "backslashreplace").decode()


def own_python(*words: str) -> list[str]:
    """Return the words that run adjourn in a Python that imports nothing from the directory that it is started in."""
    return [sys.executable, "-P", "-m", "adjourn", *words]


def own_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose PYTHONPATH leads nowhere that depends on the directory."""
    kept = [entry for entry in inherited.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    rest = {name: value for name, value in inherited.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": os.pathsep.join(kept)} if kept else rest


@cache
def own_program() -> str | None:
    """Return where this very adjourn is installed as a command, if it is."""
    # A word without a directory says nothing: a fork of a warm parent has one, and the workspace may hold such a file.
    called = os.path.realpath(sys.argv[0]) if "/" in sys.argv[0] else ""
    for candidate in (called, os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if os.path.basename(candidate) == "adjourn" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None

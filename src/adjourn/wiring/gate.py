"""Makes what judges commands, and checks what they depend on."""

import os

from adjourn.controller.gate import PolicyGate
from adjourn.core.call import Command
from adjourn.core.policy.surroundings import Surroundings
from adjourn.runners import runs_own_calls
from adjourn.settings.policies import FilePolicies
from adjourn.system.clock import now
from adjourn.wiring.own_program import own_program
from adjourn.workspace.command_files import look_at, search_path


def open_gate(root: str) -> PolicyGate:
    """Make what judges the commands of a store's tasks."""
    return PolicyGate(
        FilePolicies(root), observe, now, resolve=resolve, runs_own_calls=runs_own_calls
    )


def observe(command: Command, workspace: str | None = None) -> Surroundings:
    """Look at what a command depends on, with the PATH that its process would have.

    The `workspace` of its task is the directory that it would run in, unless it is given.
    """
    return look_at(
        command, path=search_path(None, os.environ), own=own_program() or "", workspace=workspace
    )


def resolve(path: str) -> str:
    """Return where a path really leads.

    Links are followed as the kernel does, and what is not there yet is kept.
    """
    if "\0" in path:  # no such path can be opened
        return path
    try:
        real = os.path.realpath(path)
    except OSError:
        # Somebody changes links on its way at this very moment; no rule names what comes of it
        real = f"{path} (it changes while it is looked at)"
    return real.encode("utf-8", "backslashreplace").decode()

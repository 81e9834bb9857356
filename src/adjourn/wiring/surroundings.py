"""Looks at what a command depends on, and makes what judges it."""

import os

from adjourn.controller.gate import PolicyGate
from adjourn.core.call import Command
from adjourn.core.policy.locations import is_reading
from adjourn.core.policy.opening import Surroundings
from adjourn.runners import runs_own_calls
from adjourn.settings.policies import FilePolicies
from adjourn.system.machine import now
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
        command, path=search_path(None, os.environ), own=own_program(), workspace=workspace
    )


def resolve(path: str, tool: str) -> str:
    """Return where a path really leads.

    Links are followed as the kernel does, and what is not there yet is kept. A file with several
    names may be a hook of git under another one: no rule names what a tool would write there.
    """
    if "\0" in path:  # no such path can be opened
        return path
    try:
        real = os.path.realpath(path)
        if not is_reading(tool) and os.path.isfile(real) and os.stat(real).st_nlink > 1:
            real = f"(a hard link, which has other names: {real})"
    except OSError:
        # Somebody changes links on its way at this very moment. A pattern for paths matches neither
        # the beginning nor the end of what comes of it.
        real = f"(it changes while it is looked at: {path})"
    return real.encode("utf-8", "backslashreplace").decode()

"""A command line of this very program, ready to paste."""

import os
import sys
from functools import cache

from adjourn.cli.session import Session
from adjourn.core.render import command_line


def command(session: Session, *words: str) -> str:
    """Return a command line of this very program on this very store."""
    store = ["--store", session.root] if session.given_store else []
    at = words.index("--") if "--" in words else len(words)
    return command_line([_program(sys.argv[0], os.environ.get("PATH", "")), *words[:at], *store, *words[at:]])


@cache
def _program(called: str, path: str) -> str:
    """Return `adjourn` if a shell finds us under that name, else the path it was called by."""
    called = os.path.abspath(called)
    for place in path.split(os.pathsep):
        found = os.path.join(place, "adjourn")
        if os.access(found, os.X_OK):
            return "adjourn" if os.path.realpath(found) == os.path.realpath(called) else _path_of(called)
    return _path_of(called)


def _path_of(called: str) -> str:
    return called if os.path.basename(called) == "adjourn" else "adjourn"

"""How adjourn starts itself: its own program, in a Python that imports nothing of the workspace."""

import os
import sys
from collections.abc import Mapping
from functools import cache


def own_python(*words: str) -> list[str]:
    """Return an argv for adjourn in a Python that imports nothing from the current directory."""
    return [sys.executable, "-P", "-m", "adjourn", *words]


def own_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose PYTHONPATH leads nowhere that depends on the directory."""
    kept = [
        entry for entry in inherited.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)
    ]
    rest = {name: value for name, value in inherited.items() if name != "PYTHONPATH"}
    return {**rest, "PYTHONPATH": os.pathsep.join(kept)} if kept else rest


@cache
def own_program() -> str:
    """Return where this very adjourn is installed as a command; "" if it is not."""
    # A word without a directory says nothing: a fork of a warm parent has one, and the workspace
    # may hold such a file.
    called = os.path.realpath(sys.argv[0]) if "/" in sys.argv[0] else ""
    for candidate in (called, os.path.join(os.path.dirname(sys.executable), "adjourn")):
        if (
            os.path.basename(candidate) == "adjourn"
            and os.path.isfile(candidate)
            and os.access(candidate, os.X_OK)
        ):
            return candidate
    return ""

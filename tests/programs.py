"""The real agents that tests run: where they are, and what a test does when one is missing."""

import os
import shutil
from pathlib import Path

from tests.needs import missing

_PACKAGES = Path(__file__).resolve().parent.parent / ".dev" / "programs" / "node_modules"
_PLACES = {
    "claude": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
}


def program(name: str) -> str:
    """Return the path of a real agent: what a variable names, what `./dev programs` fetched, or what PATH has."""
    named = os.environ.get(f"ADJOURN_TEST_{name.upper()}")
    fetched = sorted(_PACKAGES.glob(_PLACES[name]))
    found = named or (str(fetched[0]) if fetched else shutil.which(name))
    return found or missing(f"the real {name} (./dev programs fetches it)")

"""The real agents that tests run: where they are, and what a test does when one is missing."""

import os
import shutil
from pathlib import Path

from tests.needs import missing

_PACKAGES = Path(__file__).resolve().parent.parent / ".dev" / "programs" / "node_modules"
_PLACES = {
    "node": "node-linux-*/bin/node",
    "conformance": "@modelcontextprotocol/conformance/dist/index.js",
    "inspector": "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    "axe": "axe-core/axe.min.js",
    "claude": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "copilot": "@github/copilot-linux-*/copilot",
    "opencode": "opencode-linux-*/bin/opencode",
    "qwen": "@qwen-code/qwen-code/cli-entry.js",
    "claude-agent-acp": "@agentclientprotocol/claude-agent-acp/dist/index.js",
    "codex-acp": "@agentclientprotocol/codex-acp/dist/index.js",
}


def program(name: str) -> str:
    """Return the path of a real agent.

    What a variable names, what `./dev programs` fetched, or what PATH has.
    """
    return find_program(name) or missing(f"the real {name} (./dev programs fetches it)")


def find_program(name: str) -> str | None:
    """Return the path of a real agent, if it is there."""
    named = os.environ.get(f"ADJOURN_TEST_{name.upper()}")
    fetched = sorted(_PACKAGES.glob(_PLACES[name]))
    return named or (str(fetched[0]) if fetched else shutil.which(name))


_SAYS = {"claude": "2.1.999 (Claude Code)", "codex": "codex-cli 0.199.0"}


class Upgradable:
    """A real agent and a later one.

    Today's, if a variable names an earlier; else today's that says it were later.
    """

    def __init__(self, name: str, place: Path) -> None:
        earlier = os.environ.get(f"ADJOURN_TEST_EARLIER_{name.upper()}")
        self._later = (
            program(name) if earlier else _that_says(_SAYS[name], program(name), place / "later")
        )
        self.path = place / name
        self.path.symlink_to(earlier or program(name))

    def upgrade(self) -> None:
        """Put the later one in the place of the one that was there."""
        self.path.unlink()
        self.path.symlink_to(self._later)


def _that_says(version: str, today: str, script: Path) -> str:
    script.write_text(
        f'#!/bin/sh\n[ "$*" = --version ] && echo "{version}" && exit\nexec {today} "$@"\n'
    )
    script.chmod(0o700)
    return str(script)

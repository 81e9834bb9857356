"""A person's shell in which an agent that speaks ACP works: one of the official SDK, which plays a script."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.stage import Stage

AGENT = Path(__file__).parent / "agent.py"
DONE = [{"say": "All done."}]


def run(text: str, name: str = "call_A", **more: Any) -> dict[str, Any]:
    """Return a command that the model wants to run."""
    return {"run": f"echo {text} >> made.txt", "id": name, **more}


class Scene(Stage):
    """A stage with a scripted agent, whom the user's config knows and trusts."""

    gated = ("run", "--runner", "acp:scripted", "--pause-on-approval")
    driver, program = " _drive acp", "agent.py"

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._play = place / "play.json"
        self.shell.environment["ACP_PLAY"] = str(self._play)
        self.shell.environment.pop("XDG_CONFIG_HOME", None)
        self.configure()

    def configure(self, more: str = "trust = true") -> None:
        """Write the user's table of the agent."""
        config = self.home / ".config" / "adjourn"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(
            f'[acp.scripted]\ncommand = ["{sys.executable}", "{AGENT}"]\n{more}\n'
        )

    def play(self, *turns: list[dict[str, Any]], quirks: tuple[str, ...] = (), **more: Any) -> None:
        """Have the agent's model answer so."""
        self._play.write_bytes(msgspec.json.encode({"turns": turns, "quirks": quirks, **more}))

    def arguments(self) -> dict[str, Any]:
        """Return what the only call that waits would do."""
        (call,) = self.shell.json("show", self.task)["pause_reason"]["pending_tool_calls"]
        arguments: dict[str, Any] = call["arguments"]
        return arguments

    def session(self) -> dict[str, Any]:
        """Return the agent's newest session, as its file has it."""
        files = (self.home / ".scripted").glob("*.json")
        newest = max(files, key=lambda path: path.stat().st_mtime_ns)
        return msgspec.json.decode(newest.read_bytes(), type=dict[str, Any])

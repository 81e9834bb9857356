"""A person's shell in which Claude Code works.

An empty home, a dummy key, and a model that plays a script.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.claude.model import claude_model
from tests.e2e.shell import Document
from tests.model.script import ToolUse, Turn
from tests.model.server import Model
from tests.stage import Stage

GATED = ("run", "--runner", "claude", "--pause-on-approval")
QUIET = {
    "ANTHROPIC_API_KEY": "dummy",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
}


def bash(command: str, *, name: str | None = None) -> ToolUse:
    """Return a call of the shell."""
    return ToolUse(
        name="Bash", arguments={"command": command, "description": "it is asked for"}, id=name
    )


class Scene(Stage):
    """A stage with Claude Code, and the model that it talks to."""

    gated = GATED
    driver, program = " _drive claude", " --settings "

    def __init__(self, place: Path, program: str) -> None:
        super().__init__(place)
        self.shell.environment |= {"ADJOURN_CLAUDE": program, **QUIET}
        for name in ("CLAUDECODE", "CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN"):
            self.shell.environment.pop(name, None)

    @contextlib.contextmanager
    def model(self, turns: Sequence[Turn], **settings: Any) -> Iterator[Model]:
        """Let a model play these turns."""
        with claude_model(turns, **settings) as model:
            self.shell.environment["ANTHROPIC_BASE_URL"] = model.url
            yield model

    def let_pass(self, *rules: str) -> None:
        """Have the person's policy let these calls pass."""
        config = self.work / ".config" / "adjourn"
        config.mkdir(parents=True)
        (config / "policy.toml").write_text(
            "".join(f'[[rule]]\n{rule}\naction = "auto"\n' for rule in rules)
        )

    def session_files(self) -> list[Path]:
        """Return the files of Claude Code's sessions."""
        return sorted(self.home.glob(".claude/projects/*/*.jsonl"))


def history(request: Any) -> list[bytes]:
    """Return the messages of a request in order, without what marks where a cache ends."""
    return [
        msgspec.json.encode(_plain(message), order="sorted") for message in request.body["messages"]
    ]


def blocks(request: Any) -> list[tuple[str, str]]:
    """Return all that was said up to a request, piece by piece: by whom, and what."""
    said = [
        (message["role"], block)
        for message in request.body["messages"]
        for block in _plain(message)["content"]
    ]
    return [
        (role, block["text"].strip() if block["type"] == "text" else str(block))
        for role, block in said
    ]


def _plain(message: Document) -> Document:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return message | {
        "content": [
            {key: value for key, value in block.items() if key != "cache_control"}
            for block in content
        ]
    }


class Fake(Scene):
    """A scene whose Claude Code replays what the real one was seen to do."""

    def __init__(self, place: Path) -> None:
        program = place / "claude"
        program.write_text(
            f'#!/bin/sh\nexec {sys.executable} -S {Path(__file__).with_name("fake.py")} "$@"\n'
        )
        program.chmod(0o700)
        super().__init__(place, str(program))
        self._script = place / "script.json"
        self.shell.environment["FAKE_CLAUDE"] = str(self._script)
        self.play([])

    def play(self, turns: Sequence[Turn], *, whole: bool = False) -> None:
        """Let the model say this; `whole` has it say it without a stream."""
        self._script.write_bytes(
            msgspec.json.encode(
                [_fake_turn(turn, number, whole=whole) for number, turn in enumerate(turns)]
            )
        )

    def faults(self, fault: str) -> None:
        """Have something go wrong from now on; nothing if it is empty."""
        self.shell.environment["FAKE_FAULT"] = fault

    def argv(self) -> list[list[str]]:
        """Return every command line so far, each behind the directory that it was said in."""
        noted = Path(f"{self._script}.argv")
        return (
            [msgspec.json.decode(line, type=list[str]) for line in noted.read_text().splitlines()]
            if noted.exists()
            else []
        )


def _fake_turn(turn: Turn, number: int, *, whole: bool) -> Document:
    calls = [
        {"id": call.id or f"toolu_{number}", "name": call.name, "input": call.arguments}
        for call in turn.calls
    ]
    error = "overloaded" if turn.faults else None
    return {
        "text": turn.text,
        "calls": calls,
        "delay": turn.delay,
        "whole": whole,
        "error": error,
    } | {"status": turn.faults[0].status if turn.faults else None}

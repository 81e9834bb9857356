"""A scripted model as Claude Code needs it.

Messages have names of their own, and a pause leaves no answer to count.
"""

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.model import server
from tests.model.anthropic_messages import Messages
from tests.model.api import Body, Event
from tests.model.script import Turn
from tests.model.server import Model, playing

_PIECE = 50_000
# What Claude Code puts into the history where a turn was interrupted
_FILLER = "No response requested."


class ClaudeMessages(Messages):
    """Speaks Messages to Claude Code, which joins messages of the same name."""

    def __init__(self, *, between_blocks: float = 0.0) -> None:
        self._numbers = itertools.count(1)
        self._between_blocks = between_blocks

    def answers_so_far(self, request: Body) -> int:
        """Return how many answers came before.

        A subagent's conversation begins at the turn that its prompt names.
        """
        said = [
            message
            for message in request["messages"]
            if message["role"] == "assistant" and not _is_filler(message)
        ]
        return len(said) + _first_turn(request)

    def whole(self, turn: Turn, request: Body) -> Body:
        return super().whole(turn, request) | {"id": self._name()}

    def events(self, turn: Turn, request: Body) -> Iterator[Event]:
        name = self._name()
        for kind, data in _joined(super().events(turn, request)):
            if kind == "message_start" and isinstance(data, dict):
                data["message"]["id"] = name
            if kind == "content_block_stop":
                time.sleep(self._between_blocks)
            yield kind, data

    def _name(self) -> str:
        return f"msg_{next(self._numbers):06}"


def _joined(events: Iterator[Event]) -> Iterator[Event]:
    """Yield a stream whose pieces are larger: a call of megabytes would else take minutes."""
    held: Body | None = None
    for kind, data in events:
        delta = data["delta"] if kind == "content_block_delta" and isinstance(data, dict) else None
        if (
            delta
            and held
            and "partial_json" in delta
            and len(held["delta"]["partial_json"]) < _PIECE
        ):
            held["delta"]["partial_json"] += delta["partial_json"]
            continue
        if held:
            yield "content_block_delta", held
            held = None
        if delta and "partial_json" in delta and isinstance(data, dict):
            held = data
        else:
            yield kind, data


def _is_filler(message: Body) -> bool:
    return _FILLER in str(message["content"])


def _first_turn(request: Body) -> int:
    """Return the turn that a subagent begins at: its prompt says `begin at turn N`."""
    _, _, after = str(request["messages"][0]["content"]).partition("begin at turn ")
    number = after.partition(" ")[0]
    return int(number) if number.isdigit() else 0


@contextlib.contextmanager
def claude_model(
    turns: Sequence[Turn], *, record: Path | None = None, between_blocks: float = 0.0
) -> Iterator[Model]:
    """Play a script to Claude Code for as long as the block lasts."""
    before = server.APIS
    server.APIS = (ClaudeMessages(between_blocks=between_blocks),)
    try:
        with playing(turns, record=record) as model:
            yield model
    finally:
        server.APIS = before

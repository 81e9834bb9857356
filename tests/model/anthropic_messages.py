"""Anthropic's Messages API."""

from collections.abc import Iterator

import msgspec

from tests.model.api import Body, Event
from tests.model.script import ToolUse, Turn


class Messages:
    """Speaks Messages."""

    name = "anthropic-messages"
    path = "/messages"

    def answers_so_far(self, request: Body) -> int:
        return sum(message["role"] == "assistant" for message in request["messages"])

    def whole(self, turn: Turn, request: Body) -> Body:
        return _message(turn, request) | {
            "content": _blocks(turn),
            "stop_reason": _stop(turn),
            "usage": _read(turn) | {"output_tokens": turn.usage.output},
        }

    def events(self, turn: Turn, request: Body) -> Iterator[Event]:
        yield _named("message_start", message=_message(turn, request))
        for index, block in enumerate(_blocks(turn)):
            yield from _block(index, block, turn)
        usage = {"output_tokens": turn.usage.output}
        yield _named(
            "message_delta", delta={"stop_reason": _stop(turn), "stop_sequence": None}, usage=usage
        )
        yield _named("message_stop")

    def error(self, status: int, message: str) -> Body:
        kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(
            status, "api_error"
        )
        return {"type": "error", "error": {"type": kind, "message": message}}

    def too_long(self) -> Body:
        error = {"type": "invalid_request_error", "message": "prompt is too long: 10 tokens > 9"}
        return {"type": "error", "error": error}


def _read(turn: Turn) -> Body:
    cached = turn.usage.cached
    return {"input_tokens": turn.usage.input - cached, "cache_read_input_tokens": cached}


def _named(kind: str, **fields: object) -> Event:
    return kind, {"type": kind, **fields}


def _message(turn: Turn, request: Body) -> Body:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _read(turn) | {"output_tokens": 1},
    }


def _blocks(turn: Turn) -> list[Body]:
    texts = [{"type": "text", "text": turn.text}] if turn.text else []
    return texts + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
        for call in turn.calls
    ]


def _input(call: ToolUse) -> object:
    """Return the arguments as this API sends them.

    A JSON value; a text that is none stays a text.
    """
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return call.arguments


def _block(index: int, block: Body, turn: Turn) -> Iterator[Event]:
    if block["type"] == "text":
        yield _named("content_block_start", index=index, content_block={"type": "text", "text": ""})
        yield from (_delta(index, "text_delta", text=piece) for piece in _pieces(block["text"]))
    else:
        call = next(call for call in turn.calls if call.id == block["id"])
        yield _named("content_block_start", index=index, content_block=block | {"input": {}})
        yield from (
            _delta(index, "input_json_delta", partial_json=piece)
            for piece in _pieces(call.arguments_text)
        )
    yield _named("content_block_stop", index=index)


def _delta(index: int, kind: str, **fields: str) -> Event:
    return _named("content_block_delta", index=index, delta={"type": kind, **fields})


def _stop(turn: Turn) -> str:
    return "max_tokens" if turn.stop else ("tool_use" if turn.calls else "end_turn")


def _pieces(text: str, size: int = 12) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))

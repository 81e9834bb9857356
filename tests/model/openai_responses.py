"""OpenAI's Responses, as Codex speaks it.

Answers are lists of items, and free-text tools have no JSON arguments.
"""

from collections.abc import Iterator

from tests.model.api import Body, Event
from tests.model.script import ToolUse, Turn

_SAID = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call"})


class Responses:
    """Speaks Responses."""

    name = "openai-responses"
    path = "/responses"

    def answers_so_far(self, request: Body) -> int:
        """Count runs of items that the model said: several calls side by side are one answer."""
        said = [_is_said(item) for item in request["input"]]
        return sum(now and not before for before, now in zip([False, *said], said, strict=False))

    def whole(self, turn: Turn, request: Body) -> Body:
        return _response(turn, request, self.answers_so_far(request), "completed")

    def events(self, turn: Turn, request: Body) -> Iterator[Event]:
        whole = self.whole(turn, request)
        yield _named(
            "response.created",
            response=whole | {"status": "in_progress", "output": [], "usage": None},
        )
        for index, item in enumerate(whole["output"]):
            yield _named("response.output_item.added", output_index=index, item=item)
            yield _named("response.output_item.done", output_index=index, item=item)
        if turn.stop:
            yield _named(
                "response.incomplete",
                response=whole | {"incomplete_details": {"reason": "max_output_tokens"}},
            )
        else:
            yield _named("response.completed", response=whole)

    def error(self, status: int, message: str) -> Body:
        return {
            "error": {"message": message, "type": "scripted", "code": str(status), "param": None}
        }

    def too_long(self) -> Body:
        error = self.error(400, "This model's maximum context length is 9 tokens.")
        return {"error": error["error"] | {"code": "context_length_exceeded"}}


def _is_said(item: Body) -> bool:
    return item.get("type") in _SAID or (
        item.get("type") == "message" and item.get("role") == "assistant"
    )


def _named(kind: str, **fields: object) -> Event:
    return kind, {"type": kind, **fields}


def _response(turn: Turn, request: Body, number: int, status: str) -> Body:
    total = turn.usage.input + turn.usage.output
    usage = {
        "input_tokens": turn.usage.input,
        "output_tokens": turn.usage.output,
        "total_tokens": total,
    }
    return {
        "id": f"resp_{number + 1}",
        "object": "response",
        "status": status,
        "model": request.get("model", "scripted"),
        "output": _items(turn, number),
        "usage": usage
        | {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _items(turn: Turn, number: int) -> list[Body]:
    content = [{"type": "output_text", "text": turn.text, "annotations": []}]
    message = {
        "type": "message",
        "id": f"msg_{number + 1}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    return [*([message] if turn.text else []), *map(_call, turn.calls)]


def _call(call: ToolUse) -> Body:
    """Return a call; one whose arguments are a text is of a free-text tool, and one of an MCP server has a namespace."""
    called = {"call_id": call.id, "name": call.name, "status": "completed"}
    if isinstance(call.arguments, str):
        return called | {
            "type": "custom_tool_call",
            "id": f"ctc_{call.id}",
            "input": call.arguments,
        }
    called |= {"type": "function_call", "id": f"fc_{call.id}", "arguments": call.arguments_text}
    space, _, name = call.name.rpartition("__")
    return called | ({"name": name, "namespace": space} if space.startswith("mcp__") else {})

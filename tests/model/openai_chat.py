"""OpenAI's Chat Completions, as api.openai.com and most local servers speak it."""

from collections.abc import Iterator

from tests.model.api import Body, Event
from tests.model.script import Turn


class Chat:
    """Speaks Chat Completions."""

    name = "openai-chat"
    path = "/chat/completions"

    def answers_so_far(self, request: Body) -> int:
        return sum(message["role"] == "assistant" for message in request["messages"])

    def whole(self, turn: Turn, request: Body) -> Body:
        message: Body = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments_text},
                }
                for call in turn.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(turn), "logprobs": None}
        return _envelope(request, "chat.completion") | {"choices": [choice], "usage": _usage(turn)}

    def events(self, turn: Turn, request: Body) -> Iterator[Event]:
        def chunk(delta: Body, finish: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return None, _envelope(request, "chat.completion.chunk") | {"choices": [choice]}

        yield chunk({"role": "assistant", "content": ""})
        for word in _pieces(turn.text):
            yield chunk({"content": word})
        for index, call in enumerate(turn.calls):
            function = {"name": call.name, "arguments": ""}
            yield chunk(
                {
                    "tool_calls": [
                        {"index": index, "id": call.id, "type": "function", "function": function}
                    ]
                }
            )
            for piece in _pieces(call.arguments_text):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(turn))
        if (request.get("stream_options") or {}).get("include_usage"):
            yield (
                None,
                _envelope(request, "chat.completion.chunk")
                | {"choices": [], "usage": _usage(turn)},
            )
        yield None, "[DONE]"

    def error(self, status: int, message: str) -> Body:
        return {
            "error": {"message": message, "type": "scripted", "code": str(status), "param": None}
        }

    def too_long(self) -> Body:
        error = self.error(400, "This model's maximum context length is 9 tokens.")
        return {"error": error["error"] | {"code": "context_length_exceeded"}}


def _envelope(request: Body, kind: str) -> Body:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": 1_750_000_000,
        "model": request.get("model", "scripted"),
    }


def _finish(turn: Turn) -> str:
    return turn.stop or ("tool_calls" if turn.calls else "stop")


def _usage(turn: Turn) -> Body:
    total = turn.usage.input + turn.usage.output
    return {
        "prompt_tokens": turn.usage.input,
        "prompt_tokens_details": {"cached_tokens": turn.usage.cached},
        "completion_tokens": turn.usage.output,
        "total_tokens": total,
    }


def _pieces(text: str, size: int = 12) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))

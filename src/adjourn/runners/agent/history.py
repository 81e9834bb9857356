"""A conversation as the model layer wants it, for `model.py`. What was put into its form once stays so: what is new is added."""

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from adjourn.core.transcript import Assistant, Message, ToolCall, ToolResult, User


class History:
    """All that was sent to a model so far."""

    def __init__(self) -> None:
        self._sent: list[ModelMessage] = []
        self._count = 0

    def with_all(self, instructions: str, messages: Sequence[Message]) -> list[ModelMessage]:
        """Return what to send: the messages that were there before, and those that have come since."""
        if not self._sent:
            self._sent.append(ModelRequest(parts=[SystemPromptPart(content=instructions)]))
        for message in messages[self._count :]:
            self._add(message)
        self._count = len(messages)
        return list(self._sent)

    def _add(self, message: Message) -> None:
        match message:
            case Assistant():
                self._sent.append(ModelResponse(parts=_said(message), model_name=message.model))
            case User(text=words):
                _extend(self._sent, UserPromptPart(content=words))
            case ToolResult():
                _extend(self._sent, _result(message))


def _extend(sent: list[ModelMessage], part: UserPromptPart | ToolReturnPart) -> None:
    """Put what follows one another into one message: all results of a batch come back at once."""
    if isinstance(last := sent[-1], ModelRequest):
        sent[-1] = ModelRequest(parts=[*last.parts, part])
    else:
        sent.append(ModelRequest(parts=[part]))


def _result(message: ToolResult) -> ToolReturnPart:
    # Never as failed: then the words would arrive wrapped in JSON, and TOOL_CALL_REJECTED has to arrive exactly so.
    return ToolReturnPart(tool_name=message.name, content=message.text, tool_call_id=message.tool_call_id)


def _said(message: Assistant) -> list[ThinkingPart | TextPart | ToolCallPart]:
    thoughts = [
        ThinkingPart(content=each.text, id=each.id, signature=each.signature, provider_name=each.provider)
        for each in message.thinking
    ]
    words = [TextPart(content=message.text)] if message.text else []
    calls = [ToolCallPart(tool_name=call.name, args=_arguments(call), tool_call_id=call.id) for call in message.tool_calls]
    return [*thoughts, *words, *calls]


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as every API takes them back: an object, also where the model wrote none."""
    return call.arguments if isinstance(call.arguments, dict) else {"invalid": call.arguments}

"""Asks a model, through pydantic-ai's direct layer.

Imported only when a model is asked: it takes a second.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import msgspec
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from adjourn.runners.agent.model_errors import ModelGaveUp, ModelStumbled
from adjourn.runners.agent.options import Setup
from adjourn.runners.agent.tools.tool import Tool


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
    # Never as failed: then the words would arrive wrapped in JSON, and TOOL_CALL_REJECTED has to
    # arrive exactly so.
    return ToolReturnPart(
        tool_name=message.name, content=message.text, tool_call_id=message.tool_call_id
    )


def _said(message: Assistant) -> list[ThinkingPart | TextPart | ToolCallPart]:
    thoughts = [
        ThinkingPart(
            content=each.text, id=each.id, signature=each.signature, provider_name=each.provider
        )
        for each in message.thinking
    ]
    words = [TextPart(content=message.text)] if message.text else []
    calls = [
        ToolCallPart(tool_name=call.name, args=_arguments(call), tool_call_id=call.id)
        for call in message.tool_calls
    ]
    return [*thoughts, *words, *calls]


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as every API takes them back.

    An object, also where the model wrote none.
    """
    return call.arguments if isinstance(call.arguments, dict) else {"invalid": call.arguments}


Listener = Callable[[str], None]  # hears the words as they come
HangUp = Callable[[], Coroutine[Any, Any, None]]

# The same request again would be refused again.
_FINAL = (
    exceptions.ModelRequestRejectedError,
    exceptions.ModelQuotaExceededError,
    exceptions.ContentFilterError,
    exceptions.UserError,
)
_MILLION = Decimal(1_000_000)
_HERE = ("127.0.0.1", "::1", "localhost")


class Client:
    """A line to one model: opened at the first question, kept for the next, closed when the agent leaves."""

    def __init__(self, setup: Setup, runner: asyncio.Runner | None = None) -> None:
        self._setup = setup
        self._runner = runner or asyncio.Runner()
        self._model, self._hang_up = _model(setup)
        self._history = History()

    def close(self) -> None:
        """Hang up."""
        self._runner.run(self._hang_up())
        self._runner.close()

    def request(
        self, instructions: str, messages: Sequence[Message], tools: Sequence[Tool], hear: Listener
    ) -> Assistant:
        """Return the model's answer.

        What may pass is raised as ModelStumbled, what will not as ModelGaveUp.
        """
        asked = self._response(
            self._history.with_all(instructions, messages), _offered(tools), hear
        )
        try:
            response = self._runner.run(asked)
        except _FINAL as error:
            raise ModelGaveUp(_sentence(error)) from error
        except Exception as error:
            # A server that does not speak this API breaks its reader anywhere
            raise ModelStumbled(
                _sentence(error), retry_after=getattr(error, "retry_after", None)
            ) from error
        return _answer(response, self._setup)

    async def _response(
        self, sent: list[ModelMessage], offered: ModelRequestParameters, hear: Listener
    ) -> ModelResponse:
        settings = ModelSettings(timeout=self._setup.timeout)
        if not self._setup.stream:
            response = await model_request(
                self._model, sent, model_settings=settings, model_request_parameters=offered
            )
            hear("".join(part.content for part in response.parts if isinstance(part, TextPart)))
            return response
        streamed = model_request_stream(
            self._model, sent, model_settings=settings, model_request_parameters=offered
        )
        async with streamed as stream:
            async for event in stream:
                hear(_heard(event))
            return stream.get()


def _sentence(error: Exception) -> str:
    match error:
        case exceptions.ModelHTTPError():
            return f"the model's server says {error.status_code}: {_message(error.body)}"
        case exceptions.ModelConnectionError():
            return f"the model's server cannot be reached: {error.__cause__ or error}"
        case _:
            return f"the model's answer cannot be read: {error}"


def _message(body: object) -> str:
    """Find the words in an error's body, which each server puts elsewhere."""
    match body:
        case (
            {"message": str(words)}
            | {"error": {"message": str(words)}}
            | {"detail": str(words)}
            | str(words)
        ):
            return words
        case _:
            return str(body)


# --- the model ------------------------------------------------------------------------------------


def _model(setup: Setup) -> tuple[Model, HangUp]:
    provider, _, name = setup.model.partition(":")
    return _PROVIDERS[provider](setup, name)


def _openai(setup: Setup, name: str) -> tuple[Model, HangUp]:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key = _key(setup, "OPENAI_API_KEY", is_local=setup.base_url is not None)
    http = DefaultAsyncHttpxClient(verify=_trust(setup.base_url))
    client = AsyncOpenAI(
        base_url=setup.base_url, api_key=key, max_retries=0, timeout=setup.timeout, http_client=http
    )
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), client.close


def _anthropic(setup: Setup, name: str) -> tuple[Model, HangUp]:
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = _key(setup, "ANTHROPIC_API_KEY", is_local=setup.base_url is not None)
    http = DefaultAsyncHttpxClient(verify=_trust(setup.base_url))
    client = AsyncAnthropic(
        base_url=setup.base_url, api_key=key, max_retries=0, timeout=setup.timeout, http_client=http
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client)), client.close


_PROVIDERS: dict[str, Callable[[Setup, str], tuple[Model, HangUp]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


def _trust(base_url: str | None) -> ssl.SSLContext | bool:
    """Return whose certificates count.

    On the way to this very machine there are none: to read all the others takes 30 ms.
    """
    url = urlsplit(base_url or "")
    is_here = url.scheme == "http" and url.hostname in _HERE
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_here else True


def _key(setup: Setup, usual: str, *, is_local: bool) -> str:
    """Return the key from the environment. A server of one's own may need none."""
    variable = setup.key_variable or usual
    key = os.environ.get(variable, "")
    if not key and not is_local:
        raise ModelGaveUp(
            f"the environment variable {variable} is not set: the model's server wants a key"
        )
    return key or "none"


# --- the conversation -----------------------------------------------------------------------------


def _offered(tools: Sequence[Tool]) -> ModelRequestParameters:
    offered = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema)
        )
        for tool in tools
    ]
    return ModelRequestParameters(function_tools=offered, allow_text_output=True)


def _heard(event: object) -> str:
    match event:
        case (
            PartStartEvent(part=TextPart(content=words))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=words))
        ):
            return words
        case _:
            return ""


# --- the answer -----------------------------------------------------------------------------------


def _answer(response: ModelResponse, setup: Setup) -> Assistant:
    answer = Assistant(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        tool_calls=tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart)),
        thinking=tuple(_thought(part) for part in response.parts if isinstance(part, ThinkingPart)),
        usage=_usage(response, setup),
        model=response.model_name,
    )
    if not answer.text.strip() and not answer.tool_calls:
        raise ModelStumbled("the model's answer is empty")
    return answer


def _call(part: ToolCallPart) -> ToolCall:
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=_as_object(part.args))


def _as_object(given: str | dict[str, Any] | None) -> dict[str, Any] | str:
    if not isinstance(given, str):
        return given or {}
    try:
        return msgspec.json.decode(given or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return given


def _thought(part: ThinkingPart) -> Thinking:
    return Thinking(
        text=part.content, id=part.id, signature=part.signature, provider=part.provider_name
    )


def _usage(response: ModelResponse, setup: Setup) -> Usage:
    spent = response.usage
    cost = _cost(response, setup)
    return Usage(
        input=spent.input_tokens,
        output=spent.output_tokens,
        cost=None if cost is None else f"{cost:f}",
    )


def _cost(response: ModelResponse, setup: Setup) -> Decimal | None:
    spent = response.usage
    if setup.input_price is not None and setup.output_price is not None:
        prices = Decimal(str(setup.input_price)), Decimal(str(setup.output_price))
        return (spent.input_tokens * prices[0] + spent.output_tokens * prices[1]) / _MILLION
    if setup.base_url is not None:
        return None  # a server of one's own: its model may have a known name, but not that price
    try:
        return response.cost().total_price
    except (LookupError, ValueError, AssertionError):
        return None

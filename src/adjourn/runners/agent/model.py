"""Asks a model, through pydantic-ai's direct layer.

Imported only when a model is asked: it takes a second.
"""

import asyncio
import os
import re
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
from adjourn.runners.agent.model_errors import ContextFull, ModelRefused, ModelStumbled
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.tool import Tool

TYPE_CHECKING = False

if TYPE_CHECKING:  # its package may be missing
    from pydantic_ai.models.anthropic import AnthropicModelSettings


class History:
    """All that was sent to a model so far."""

    def __init__(self) -> None:
        self._sent: list[ModelMessage] = []
        self._count = 0
        self._first: Message | None = None

    def with_all(self, instructions: str, messages: Sequence[Message]) -> list[ModelMessage]:
        """Return what to send: the messages from before, and those that have come since."""
        # After a summary the conversation begins otherwise, and all of it is sent again
        if self._first is not messages[0]:
            self._first, self._sent, self._count = messages[0], [], 0
        if not self._sent:
            self._sent.append(ModelRequest(parts=[SystemPromptPart(content=instructions)]))
        for message in messages[self._count :]:
            if isinstance(message, Assistant):
                self._sent.append(_response_of(message))
                continue
            part: UserPromptPart | ToolReturnPart
            if isinstance(message, User):
                part = UserPromptPart(content=message.text)
            elif isinstance(message, ToolResult):
                # Never as failed: then the text would arrive wrapped in JSON, and
                # TOOL_CALL_REJECTED has to arrive exactly so.
                part = ToolReturnPart(
                    tool_name=message.name, content=message.text, tool_call_id=message.tool_call_id
                )
            else:
                continue  # it stands in the place of other messages, and is not one
            # All results of a batch come back in one message
            if isinstance(last := self._sent[-1], ModelRequest):
                self._sent[-1] = ModelRequest(parts=[*last.parts, part])
            else:
                self._sent.append(ModelRequest(parts=[part]))
        self._count = len(messages)
        return list(self._sent)


def _response_of(message: Assistant) -> ModelResponse:
    thoughts = [
        ThinkingPart(
            content=each.text, id=each.id, signature=each.signature, provider_name=each.provider
        )
        for each in message.thinking
    ]
    texts = [TextPart(content=message.text)] if message.text else []
    calls: list[ToolCallPart] = []
    for call in message.tool_calls:
        # Every API takes back an object only, also where the model wrote none
        given = call.arguments if isinstance(call.arguments, dict) else {"invalid": call.arguments}
        calls.append(ToolCallPart(tool_name=call.name, args=given, tool_call_id=call.id))
    return ModelResponse(parts=[*thoughts, *texts, *calls], model_name=message.model)


Listener = Callable[[str], None]  # hears the words as they come
CloseConnection = Callable[[], Coroutine[Any, Any, None]]

# The same request again would be refused again.
_FINAL = (
    exceptions.ModelRequestRejectedError,
    exceptions.ModelQuotaExceededError,
    exceptions.ContentFilterError,
    exceptions.UserError,
)
_TOO_LONG = frozenset({400, 413, 422})
_SAYS_TOO_LONG = re.compile(
    r"context_length_exceeded|request_too_large|(prompt|input|request) is too long"
    r"|maximum context length|context window",
    re.IGNORECASE,
)
_MILLION = Decimal(1_000_000)
_HERE = ("127.0.0.1", "::1", "localhost")


class Client:
    """Sends requests to one model, over one connection that stays open until the agent leaves."""

    def __init__(self, setup: AgentSetup, runner: asyncio.Runner | None = None) -> None:
        self._setup = setup
        self._runner = runner or asyncio.Runner()
        provider, _, name = setup.model.partition(":")
        self._model, self._close_connection = _PROVIDERS.get(provider, _other)(setup, name)
        self._history = History()

    def close(self) -> None:
        """Close the connection."""
        self._runner.run(self._close_connection())
        self._runner.close()

    def request(
        self, instructions: str, messages: Sequence[Message], tools: Sequence[Tool], hear: Listener
    ) -> Assistant:
        """Return the model's answer.

        What may pass is raised as ModelStumbled, what will not as ModelRefused.
        """
        asked = self._response(
            self._history.with_all(instructions, messages), _offered(tools), hear
        )
        try:
            response = self._runner.run(asked)
        except _FINAL as error:
            refusal = ContextFull if _is_too_long(error) else ModelRefused
            raise refusal(_sentence(error)) from error
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
        if self._setup.model.startswith("anthropic:"):
            # Anthropic caches only what it is told to. It is told so beside the messages, whose
            # bytes stay the same from request to request.
            caching: AnthropicModelSettings = {"anthropic_cache": True}
            settings |= caching
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


def _is_too_long(error: Exception) -> bool:
    """Return whether the server says that the conversation is too long; each says it otherwise."""
    is_refused = isinstance(error, exceptions.ModelHTTPError) and error.status_code in _TOO_LONG
    return is_refused and _SAYS_TOO_LONG.search(str(getattr(error, "body", ""))) is not None


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


def _openai(setup: AgentSetup, name: str) -> tuple[Model, CloseConnection]:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key = _key(setup, "OPENAI_API_KEY", is_local=setup.base_url is not None)
    http = DefaultAsyncHttpxClient(verify=_trust(setup.base_url))
    client = AsyncOpenAI(
        base_url=setup.base_url, api_key=key, max_retries=0, timeout=setup.timeout, http_client=http
    )
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), client.close


def _anthropic(setup: AgentSetup, name: str) -> tuple[Model, CloseConnection]:
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = _key(setup, "ANTHROPIC_API_KEY", is_local=setup.base_url is not None)
    http = DefaultAsyncHttpxClient(verify=_trust(setup.base_url))
    client = AsyncAnthropic(
        base_url=setup.base_url, api_key=key, max_retries=0, timeout=setup.timeout, http_client=http
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client)), client.close


_PROVIDERS: dict[str, Callable[[AgentSetup, str], tuple[Model, CloseConnection]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


def _other(setup: AgentSetup, name: str) -> tuple[Model, CloseConnection]:
    """Return any other model that pydantic-ai knows; it finds its key and its server itself."""
    del name
    from pydantic_ai.models import infer_model

    try:
        return infer_model(setup.model), _nothing_to_close
    except ImportError as error:
        raise ModelRefused(f"{setup.model} needs what is not installed. {error}") from error
    except (exceptions.UserError, ValueError) as error:
        raise ModelRefused(f"{setup.model} cannot be used: {error}") from error


async def _nothing_to_close() -> None:
    """Close nothing: such a model looks after its connection."""


def _trust(base_url: str | None) -> ssl.SSLContext | bool:
    """Return whose certificates count.

    On the way to this very machine there are none: to read all the others takes 30 ms.
    """
    url = urlsplit(base_url or "")
    is_here = url.scheme == "http" and url.hostname in _HERE
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_here else True


def _key(setup: AgentSetup, usual: str, *, is_local: bool) -> str:
    """Return the key from the environment. A server of one's own may need none."""
    variable = setup.key_variable or usual
    key = os.environ.get(variable, "")
    if not key and not is_local:
        raise ModelRefused(
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


def _answer(response: ModelResponse, setup: AgentSetup) -> Assistant:
    texts, calls, thinking = list[str](), list[ToolCall](), list[Thinking]()
    for part in response.parts:
        match part:
            case TextPart():
                texts.append(part.content)
            case ToolCallPart():
                arguments = _as_object(part.args)
                calls.append(
                    ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments)
                )
            case ThinkingPart(content=text, id=name, signature=signature, provider_name=provider):
                thinking.append(
                    Thinking(text=text, id=name, signature=signature, provider=provider)
                )
            case _:
                pass
    if not "".join(texts).strip() and not calls:
        raise ModelStumbled("the model's answer is empty")
    spent, cost = response.usage, _cost(response, setup)
    return Assistant(
        text="".join(texts),
        tool_calls=tuple(calls),
        thinking=tuple(thinking),
        usage=Usage(
            input=spent.input_tokens,
            cached=spent.cache_read_tokens,
            output=spent.output_tokens,
            cost=None if cost is None else f"{cost:f}",
        ),
        model=response.model_name,
    )


def _as_object(given: Any) -> dict[str, Any] | str:
    if not isinstance(given, str):
        return given or {}
    try:
        return msgspec.json.decode(given or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return given


def _cost(response: ModelResponse, setup: AgentSetup) -> Decimal | None:
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

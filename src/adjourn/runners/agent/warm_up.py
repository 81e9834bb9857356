"""Warms up a process: it asks a model that it plays itself, so that all is imported and built.

Nothing else stays: the connection is closed, the server is gone, its threads have ended.
"""

import asyncio

from adjourn.core.agent.transcript import Assistant, Message, ToolCall, ToolResult, User
from adjourn.runners.agent.model import Client
from adjourn.runners.agent.options import PROVIDERS, AgentSetup
from adjourn.runners.agent.tools.toolbox import FINISH

_CONVERSATION: tuple[Message, ...] = (
    User(text="Begin."),
    Assistant(
        text="Looking.",
        tool_calls=(ToolCall(id="call", name=FINISH.name, arguments={"message": "x"}),),
    ),
    ToolResult(tool_call_id="call", name=FINISH.name, text="done"),
)


def rehearse() -> None:
    """Ask each kind of model once."""
    for provider in PROVIDERS:
        _ask(provider, "".join(f"{event}\n\n" for event in _ANSWERS[provider]).encode())


def _ask(provider: str, answer: bytes) -> None:
    runner = asyncio.Runner()
    server = runner.run(asyncio.start_server(_Player(answer).play, "127.0.0.1"))
    address, port = server.sockets[0].getsockname()[:2]
    line = Client(
        AgentSetup(
            model=f"{provider}:rehearsal", base_url=f"http://{address}:{port}/v1", timeout=10.0
        ),
        runner,
    )
    try:
        line.request("Rehearse.", _CONVERSATION, [FINISH], hear=lambda _: None)
    finally:
        server.close()
        line.close()


class _Player:
    """Gives everyone the same answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear one request out, and answer it."""
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(_length(head))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            + self._answer
        )
        await writer.drain()
        writer.close()


def _length(head: bytes) -> int:
    fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in fields if name == b"content-length"), 0)


# --- what the models say --------------------------------------------------------------------------

_CHUNK = '{"id":"x","object":"chat.completion.chunk","created":1,"model":"x"'
_CHOICE = f'data: {_CHUNK},"choices":[{{"index":0,"logprobs":null,"finish_reason"'
_OPENAI = (
    f'{_CHOICE}:null,"delta":{{"role":"assistant","content":"Done."}}}}]}}',
    (
        f'{_CHOICE}:null,"delta":{{"tool_calls":[{{"index":0,"id":"y","type":"function",'
        '"function":{"name":"finish","arguments":"{}"}}]}}]}'
    ),
    f'{_CHOICE}:"tool_calls","delta":{{}}}}]}}',
    (
        f'data: {_CHUNK},"choices":[],'
        '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
    ),
    "data: [DONE]",
)
_DELTA = 'event: content_block_delta\ndata: {"type":"content_block_delta"'
_START = 'event: content_block_start\ndata: {"type":"content_block_start"'
_STOP = 'event: content_block_stop\ndata: {"type":"content_block_stop"'
_ANTHROPIC = (
    (
        'event: message_start\ndata: {"type":"message_start","message":{"id":"x",'
        '"type":"message","role":"assistant","model":"x",'
        '"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}'
    ),
    f'{_START},"index":0,"content_block":{{"type":"text","text":""}}}}',
    f'{_DELTA},"index":0,"delta":{{"type":"text_delta","text":"Done."}}}}',
    f'{_STOP},"index":0}}',
    f'{_START},"index":1,"content_block":{{"type":"tool_use","id":"y","name":"finish","input":{{}}}}}}',
    f'{_DELTA},"index":1,"delta":{{"type":"input_json_delta","partial_json":"{{}}"}}}}',
    f'{_STOP},"index":1}}',
    (
        'event: message_delta\ndata: {"type":"message_delta",'
        '"delta":{"stop_reason":"tool_use","stop_sequence":null},'
        '"usage":{"output_tokens":1}}'
    ),
    'event: message_stop\ndata: {"type":"message_stop"}',
)
_ANSWERS = {"openai": _OPENAI, "anthropic": _ANTHROPIC}

"""Shows that a Codex asks our hook before it speaks with its model.

A model of ours has it make one call that does nothing.
"""

import socket
import threading
from contextlib import closing, suppress
from typing import Any

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.runners.channel import Gone, Message, Silent
from adjourn.runners.codex import hook
from adjourn.runners.codex.hook import HOOK, WaitingHooks
from adjourn.runners.codex.launch import Launch
from adjourn.runners.codex.program import toml_text
from adjourn.runners.hook import HookRequest

_PATIENCE = 60.0  # seconds
_PIECE = 65_536
_NAME = "adjourn_rehearsal"
_CALL = "call_rehearsal"
_NO_PROXY = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
_DOES_NOTHING = {
    "exec_command": {"cmd": "true"},
    "shell_command": {"command": "true"},
    "shell": {"command": ["true"]},
}
_ENDS = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "The hook was not asked."}],
}


def rehearse(launch: Launch) -> None:
    """Refuse a Codex that makes a call without asking the hook.

    It would make every call so, and nothing else stops it.
    """
    if launch.is_rehearsed:
        return
    hooks, made = WaitingHooks(launch.place, seal=launch.seal), threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=_play, args=(listener, made), daemon=True).start()
        turn = launch.start(
            *_words(launch, listener.getsockname()[1]),
            hooks=hooks,
            is_spoken_to=False,
            also=_NO_PROXY,
        )
        try:
            while not _is_ours(turn.next(_PATIENCE)):
                pass
        except (Gone, Silent):
            raise _failed(launch, made=made.is_set()) from None
        finally:
            turn.kill()
            hooks.close()
            listener.shutdown(socket.SHUT_RDWR)  # wakes the model
    launch.is_rehearsed = True


def _failed(launch: Launch, *, made: bool) -> AdjournError:
    if made:
        return AdjournError(
            "Codex made a call without asking the hook at which its calls wait",
            way_out=hook.SWITCHED_OFF,
        )
    why = "Codex could not be tried out before it speaks with its model"
    return AdjournError(
        ": ".join(filter(None, [why, launch.complaint])), way_out="put its own settings in order"
    )


def _words(launch: Launch, port: int) -> list[str]:
    provider = f'{{name="adjourn",base_url="http://127.0.0.1:{port}/v1",wire_api="responses"}}'
    ours = {
        "model_provider": toml_text(_NAME),
        f"model_providers.{_NAME}": provider,
        "mcp_servers": "{}",
    }
    settings = [word for name, value in ours.items() for word in ("-c", f"{name}={value}")]
    words = [
        "exec",
        "--json",
        "--ephemeral",
        "--skip-git-repo-check",
        "-s",
        "read-only",
        "-m",
        _NAME,
        "-C",
        launch.workspace,
    ]
    return [*words, *launch.settings, *settings, "--", "Rehearsal."]


def _is_ours(message: Message) -> bool:
    return (
        message.method == HOOK
        and msgspec.json.decode(message.params, type=HookRequest).tool_use_id == _CALL
    )


def _play(listener: socket.socket, made: threading.Event) -> None:
    """Answer each request until nobody listens any more.

    First with the call, then with the end; note when it was made.
    """
    with suppress(OSError):
        while True:
            line, _ = listener.accept()
            with closing(line), suppress(OSError):
                request = _heard(line)
                if _CALL.encode() in request:
                    made.set()
                line.sendall(_answer(request))


def _heard(line: socket.socket) -> bytes:
    """Return a whole request."""
    said = b""
    while b"\r\n\r\n" not in said or len(said.partition(b"\r\n\r\n")[2]) < _length(said):
        piece = line.recv(_PIECE)
        if not piece:
            break
        said += piece
    return said


def _length(said: bytes) -> int:
    found = [line for line in said.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(found[0].partition(b":")[2]) if found else 0


def _call(request: bytes) -> dict[str, Any]:
    """Return a call of whichever shell this Codex offers."""
    name = next(
        (name for name in _DOES_NOTHING if f'"name":"{name}"'.encode() in request), "exec_command"
    )
    return {
        "type": "function_call",
        "name": name,
        "call_id": _CALL,
        "arguments": msgspec.json.encode(_DOES_NOTHING[name]).decode(),
    }


def _answer(request: bytes) -> bytes:
    if not request.partition(b" HTTP")[0].endswith(b"/responses"):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    item = _ENDS if _CALL.encode() in request else _call(request)
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": _NAME}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": _NAME, "usage": usage}},
    ]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return head + b"".join(
        b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), msgspec.json.encode(each))
        for each in events
    )

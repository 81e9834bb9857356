"""The file of a Claude Code session.

Where it is, whether it can be resumed, and how a copy takes its place.
"""

import glob
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from adjourn.runners.claude.protocol import Called, events_of
from adjourn.system.files import write_whole

TYPE_CHECKING = False

if TYPE_CHECKING:  # a driver does without
    from adjourn.core.agent.transcript import Message


class _Entry(msgspec.Struct):
    type: str = ""
    session_id: str = msgspec.field(name="sessionId", default="")


def files_of(session: str, environment: Mapping[str, str]) -> list[str]:
    """Return where the program keeps the session, newest first.

    It may have been run in several directories.
    """
    home = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(
        environment.get("HOME", ""), ".claude"
    )
    found = glob.glob(os.path.join(glob.escape(home), "projects", "*", f"{session}.jsonl"))
    return sorted(filter(os.path.isfile, found), key=_changed_at, reverse=True)


def _changed_at(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0  # it has just been taken away


def read(session: str, paths: list[str]) -> bytes | None:
    """Return the first of these files that can be resumed, if one can."""
    return next(
        (
            content
            for path in paths
            if (content := _content(path)) and is_resumable(session, content)
        ),
        None,
    )


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_resumable(session: str, content: bytes) -> bool:
    """Say whether a session's file holds what the person said.

    One that was killed too early has only its head.
    """
    return any(
        _is_prompt(session, line) for line in content.splitlines() if b'"type":"user"' in line
    )


def _is_prompt(session: str, line: bytes) -> bool:
    try:
        entry = msgspec.json.decode(line, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return (entry.type, entry.session_id) == ("user", session)


def calls_of(message: str, paths: list[str]) -> list[Called]:
    """Return all calls of a message that came in one piece.

    The program puts such a message into its file as one entry.
    """
    mark = b'"id":' + msgspec.json.encode(message)
    for line in (line for path in paths for line in _content(path).splitlines() if mark in line):
        calls = [event for event in events_of(line) if isinstance(event, Called)]
        if calls and all(call.is_whole and call.message == message for call in calls):
            return calls
    return []


def shows_end_of(call: str, content: bytes) -> bool:
    """Say whether a session's file holds what came of a call, or that we told it.

    One that was killed has not written all.
    """
    return (
        b'"tool_use_id":' + msgspec.json.encode(call) in content or f"({call})".encode() in content
    )


class _Tokens(msgspec.Struct):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _Piece(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    tool_use_id: str = ""
    is_error: bool | None = None
    content: Any = None


class _Said(msgspec.Struct):
    id: str = ""
    model: str | None = None
    content: str | list[_Piece] = ""
    usage: _Tokens = msgspec.field(default_factory=_Tokens)


class _SaidEntry(msgspec.Struct):
    type: str = ""
    message: _Said | None = None
    is_meta: bool = msgspec.field(name="isMeta", default=False)
    is_sidechain: bool = msgspec.field(name="isSidechain", default=False)


def messages_in(content: bytes) -> "list[Message]":
    """Return the conversation that a session's file holds, without what Claude Code adds itself.

    An answer of the model is in several entries of the same id; sub-agents are left out.
    """
    # Only who wants to read it needs them: a driver does without
    from adjourn.core.agent.transcript import Assistant, ToolCall, ToolResult, Usage, User

    found: list[Message] = []
    names: dict[str, str] = {}  # of tools, by their calls
    newest = ""
    for row in content.splitlines():
        if b'"user"' not in row and b'"assistant"' not in row:
            continue
        try:
            entry = msgspec.json.decode(row, type=_SaidEntry)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # a line of another kind, or one that was not written whole
        said = entry.message
        if said is None or entry.is_meta or entry.is_sidechain:
            continue
        whole = said.content
        pieces = [_Piece(type="text", text=whole)] if isinstance(whole, str) else whole
        text = "\n".join(piece.text for piece in pieces if piece.type == "text" and piece.text)
        if entry.type == "user":
            for piece in pieces:
                if piece.type == "tool_result":
                    told, name = _words_of(piece.content), names.get(piece.tool_use_id, "")
                    found.append(
                        ToolResult(
                            tool_call_id=piece.tool_use_id,
                            name=name,
                            text=told,
                            failed=bool(piece.is_error),
                        )
                    )
            found += [User(text=text)] if text else []
        elif entry.type == "assistant":
            calls = tuple(
                ToolCall(id=piece.id, name=piece.name, arguments=piece.input)
                for piece in pieces
                if piece.type == "tool_use" and isinstance(piece.input, dict)
            )
            names |= {call.id: call.name for call in calls}
            last = found[-1] if found else None
            if isinstance(last, Assistant) and said.id and said.id == newest:
                text = "\n".join(filter(None, (last.text, text)))
                found[-1] = msgspec.structs.replace(
                    last, text=text, tool_calls=(*last.tool_calls, *calls)
                )
                continue
            newest, used = said.id, said.usage
            cached = used.cache_creation_input_tokens + used.cache_read_input_tokens
            usage = Usage(
                input=used.input_tokens + cached,
                cached=used.cache_read_input_tokens,
                output=used.output_tokens,
            )
            found.append(Assistant(text=text, tool_calls=calls, usage=usage, model=said.model))
    return found


def _words_of(content: Any) -> str:
    """Return the words of a tool's result, which is a text or a list of pieces."""
    if isinstance(content, str):
        return content
    try:
        pieces = msgspec.convert(content or [], list[_Piece])
    except msgspec.ValidationError:
        return ""
    return "\n".join(piece.text or f"({piece.type})" for piece in pieces)


def lay_out(session: str, content: bytes, *, place: str) -> str:
    """Put a copy of the session where the program can be sent to, and return the path."""
    path = os.path.join(place, f"{session}.jsonl")
    write_whole(path, content)
    return path

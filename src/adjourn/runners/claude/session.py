"""The file of a Claude Code session.

Where it is, whether it can be resumed, and how a copy takes its place.
"""

import glob
import os
from collections.abc import Mapping

import msgspec

from adjourn.runners.claude.protocol import Called, events_of
from adjourn.system.files import write_whole


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


def lay_out(session: str, content: bytes, *, place: str) -> str:
    """Put a copy of the session where the program can be sent to, and return the path."""
    path = os.path.join(place, f"{session}.jsonl")
    write_whole(path, content)
    return path

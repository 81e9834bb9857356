"""Agents of others that pause as adjourn does: exit code 10 and a manifest with a checkpoint id.

How such an agent is resumed by its own command, instead of being run again from its beginning.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.resumption import Resumption
from adjourn.core.text.render import visible

_ID, _FLAGS, _INPUT = "{checkpoint_id}", "{flags}", "{input}"
_WAY_OUT = "adjourn run --resume-with 'CMD -c {checkpoint_id} {flags}' -- CMD"
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")


class ForeignPause(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest of such an agent says: where to go on, and which calls wait."""

    checkpoint_id: str
    pending: tuple[str, ...] = ()


class _PendingCall(msgspec.Struct, frozen=True):
    id: str


class _Reason(msgspec.Struct, frozen=True):
    pending_tool_calls: tuple[_PendingCall, ...] = ()


class _Manifest(msgspec.Struct, frozen=True):
    checkpoint_id: str
    pause_reason: _Reason = _Reason()


def read_template(text: str) -> tuple[str, ...]:
    """Return the words of a `--resume-with`, or raise Misuse."""
    import shlex  # most commands are resumed as they were started (bench start)

    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise Misuse(f"--resume-with: {error}", way_out=_WAY_OUT) from None
    if not any(_ID in word for word in words):
        raise Misuse(f"--resume-with has no {_ID}", way_out=_WAY_OUT)
    if _FLAGS not in words and not any(_INPUT in word for word in words):
        raise Misuse(
            f"--resume-with has neither {_FLAGS} as a word of its own nor {_INPUT}",
            way_out=_WAY_OUT,
        )
    if any(mark in words[0] for mark in (_ID, _FLAGS, _INPUT)):
        raise Misuse("--resume-with begins with the program", way_out=_WAY_OUT)
    return words


def read_pause(manifest: str | None) -> ForeignPause | None:
    """Return what a manifest says, or None if it names no checkpoint that can be resumed."""
    try:
        found = msgspec.json.decode(manifest or "", type=_Manifest)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    pending = tuple(call.id for call in found.pause_reason.pending_tool_calls)
    # A word that begins with a dash would be an option
    if not all(_WORD.fullmatch(word) for word in (found.checkpoint_id, *pending)):
        return None
    return ForeignPause(checkpoint_id=found.checkpoint_id, pending=pending)


def resume_argv(
    template: Sequence[str], pause: ForeignPause, resumption: Resumption | None = None
) -> tuple[str, ...]:
    """Return the command that resumes such an agent.

    Without a resumption it approves every call that waits, each by its name.
    """
    said = resumption or Resumption(approve=pause.pending)
    has_input = any(_INPUT in word for word in template)
    if said.input is not None and not has_input:
        raise Misuse(
            f"its --resume-with has no {_INPUT}: --input cannot be passed on",
            way_out="adjourn resume --help",
        )
    unknown = [name for name in (*said.approve, *said.reject) if name not in pause.pending]
    if unknown:
        pending = ", ".join(pause.pending) or "none"
        raise Misuse(
            f"no call {visible(unknown[0])} is pending; pending: {pending}",
            way_out="adjourn resume --help",
        )
    given = said.input if said.input is not None else _as_input(said, pause)
    words: list[str] = []
    for word in template:
        if word == _FLAGS:
            words += _as_flags(said) if said.input is None else []
        else:
            named = word.replace(_ID, pause.checkpoint_id)
            words.append(named.replace(_INPUT, given) if _INPUT in word else named)
    return tuple(words)


def _as_flags(said: Resumption) -> list[str]:
    flags = [word for name in said.approve for word in ("--approve", name)]
    flags += [word for name in said.reject for word in ("--reject", name)]
    flags += ["--approve-all"] if said.approve_all else []
    flags += ["--reject-all"] if said.reject_all else []
    return flags + ([said.text] if said.text is not None else [])


def _as_input(said: Resumption, pause: ForeignPause) -> str:
    """Return the same as JSON: decisions on calls, or a prompt."""
    if said.text is not None:
        return msgspec.json.encode({"prompt": said.text}).decode()
    decisions: list[dict[str, Any]] = [
        {"tool_call_id": name, "approved": name in said.approve or said.approve_all}
        for name in pause.pending
    ]
    return msgspec.json.encode({"tool_decisions": decisions}).decode()


def read_input(text: str) -> str:
    """Return what `--input` was given, if it is JSON."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Misuse(f"--input is not JSON: {error}", way_out="adjourn resume --help") from None
    return text

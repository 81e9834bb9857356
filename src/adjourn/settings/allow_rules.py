"""Keeps the user's always-allow rules in a file that is written whole."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.call import COMMAND, Json, Word, arguments_of, canonical
from adjourn.core.errors import BadPolicy, Misuse
from adjourn.core.policy.judge import allowed_call
from adjourn.core.policy.policy import Allowance
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.core.text.toml import Problem
from adjourn.core.text.when import moment, stamp
from adjourn.settings.policy_text import Unreadable, read_text, rules_path
from adjourn.system.files import hold_lock, private_directory, write_whole

_HEAD = "# Written by adjourn: change it with `adjourn rules add` and `adjourn rules revoke`.\n"
_LOCK = "rules.lock"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An always-allow rule as it is written down."""

    id: str
    tool: str
    argv: tuple[Word, ...] | None = None
    arguments: str | None = None
    programs: dict[str, str] = {}
    files: dict[str, str] = {}
    workspace: str | None = None
    task: str | None = None
    until: str
    by: str
    at: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[_Table, ...] = ()


def read_allowances(path: str, problems: list[Problem]) -> tuple[Allowance, ...]:
    """Return the always-allow rules of a file, or say what is wrong with it."""
    try:
        return tuple(_read(read_text(path, is_project=False)))
    except Unreadable as unreadable:
        problems.append(unreadable.problem)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        # TOML's errors are ValueErrors, too
        problems.append(
            Problem(
                source=path, what=f"{error}; `adjourn rules` writes this file, nobody else should"
            )
        )
    return ()


def _read(text: str) -> Iterator[Allowance]:
    # Slow to import, and seldom needed
    import tomllib

    for table in msgspec.convert(tomllib.loads(text), _File).allow:
        if (table.argv is None) == (table.arguments is None) or (table.workspace is None) == (
            table.task is None
        ):
            raise ValueError(
                f"rule {table.id} must have either words or arguments,"
                " and either a workspace or a task"
            )
        yield Allowance(
            id=table.id,
            call=allowed_call(table.tool, _arguments(table)),
            programs=table.programs,
            files=table.files,
            workspace=table.workspace,
            task=table.task,
            until=moment(table.until),
            by=table.by,
            at=moment(table.at),
        )


def _arguments(table: _Table) -> dict[str, Any]:
    if table.argv is not None:
        return {"argv": msgspec.to_builtins(table.argv)}
    return decode_unambiguous(table.arguments or "{}", type=dict[str, Any])


def change_allowances(change: Callable[[Sequence[Allowance]], Iterable[Allowance]]) -> None:
    """Put changed rules in the place of those that are there.

    Of several who change them at once, each waits for the others.
    """
    path = rules_path()
    place = os.path.dirname(path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    private_directory(place)
    held = hold_lock(os.path.join(place, _LOCK))
    try:
        problems: list[Problem] = []
        before = read_allowances(path, problems) if os.path.lexists(path) else ()
        if problems:
            raise BadPolicy(str(problems[0]), way_out="adjourn policy check")
        write_whole(path, _written(change(before)))
    finally:
        held.close()


def _written(allowances: Iterable[Allowance]) -> bytes:
    try:
        return "\n".join([_HEAD, *map(_table, allowances)]).encode()
    except UnicodeEncodeError:
        raise Misuse(
            "a path is not UTF-8: no rule can name it", way_out="adjourn rules add --help"
        ) from None


def _table(each: Allowance) -> str:
    call = msgspec.json.decode(each.call, type=dict[str, Any])
    arguments: dict[str, Json] = arguments_of(each.call)
    is_command = call["tool"] == COMMAND
    scope = (
        ("workspace", _text(each.workspace)) if each.workspace else ("task", _text(each.task or ""))
    )
    lines = {
        "id": _text(each.id),
        "tool": _text(call["tool"]),
        "argv" if is_command else "arguments": _words(arguments["argv"])
        if is_command
        else _text(canonical(arguments).decode()),
        "programs": _map(each.programs),
        "files": _map(each.files),
        scope[0]: scope[1],
        "until": _text(stamp(each.until)),
        "by": _text(each.by),
        "at": _text(stamp(each.at)),
    }
    return "\n".join(["[[allow]]", *(f"{key} = {value}" for key, value in lines.items()), ""])


def _map(texts: Mapping[str, str]) -> str:
    return (
        "{ "
        + ", ".join(f"{_text(name)} = {_text(text)}" for name, text in sorted(texts.items()))
        + " }"
    )


def _words(words: Any) -> str:
    return (
        f"[{', '.join(_text(word) if isinstance(word, str) else _bytes(word) for word in words)}]"
    )


def _bytes(word: Any) -> str:
    return f"{{ bytes = {_text(word['bytes'])} }}"


def _text(text: str) -> str:
    """Write a TOML string: JSON's, but for one character that TOML does not take as it is."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007F")
